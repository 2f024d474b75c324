"""Running the examples of rules: wrong code is found and fixed as written, right code is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import PluginError
from ..rule import Example, Rule
from ..settings import Options
from .check import check_run, fix_in_memory
from .rules import UNUSED
from .run import prepare


def rules_in(path: Path) -> Iterator[Rule]:
    """Import a file, or the files of a folder, and yield the rules that are defined there.

    Raises:
        PluginError: a file cannot be imported.
    """
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        root = file.resolve().parent
        while (root / "__init__.py").is_file():
            root = root.parent
        name = ".".join(file.resolve().relative_to(root).with_suffix("").parts)
        sys.path.insert(0, str(root))
        try:
            module = import_module(name.removesuffix(".__init__"))
        except Exception as error:
            raise PluginError(f"cannot import {file}: {type(error).__name__}: {error}") from error
        finally:
            sys.path.remove(str(root))
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, Rule) and kind is not Rule:
                if kind.__module__ == module.__name__:
                    yield kind()


def failures(rule: Rule) -> Iterator[str]:
    """Yield how examples of a rule fail."""
    checked = (wrong_example_fails, rule.wrong), (right_example_fails, rule.right_examples)
    for fails, examples in checked:
        for example in examples:
            if reason := fails(rule, example):
                yield f"{rule.code}: {reason}\nin the example\n{example.before}"
    if not (rule.wrong and rule.right):
        yield f"{rule.code} has no {'right' if rule.wrong else 'wrong'} examples"


def wrong_example_fails(rule: Rule, example: Example) -> str:
    """Return why the rule does not find wrong code, or fixes it otherwise; empty if it is right."""
    found, fixed = _run(rule, example.filename, example.before)
    if found != {rule.code}:
        return f"found {', '.join(sorted(found)) or 'nothing'}"
    if example.after is None:
        return "a fix was made" if fixed != example.before else ""
    if fixed != example.after:
        return f"it was fixed to\n{fixed}"
    again, _ = _run(rule, example.filename, fixed)
    return f"the fixed code has {', '.join(sorted(again))}" if again else ""


def right_example_fails(rule: Rule, example: Example) -> str:
    """Return why the rule finds something in right code; empty if it does not."""
    found, _ = _run(rule, example.filename, example.before)
    return "found in right code" if rule.code in found else ""


def _run(rule: Rule, filename: str, text: str) -> tuple[set[str], str]:
    """Return the codes that are found in a file, and the file with all fixes."""
    with TemporaryDirectory(prefix="remat-migrate-") as name:
        folder = Path(name).resolve()
        (folder / filename).parent.mkdir(parents=True, exist_ok=True)
        (folder / filename).write_text(text, encoding="utf-8", newline="")
        run = prepare([folder], Options())
        # Whether a suppression is unused depends on the other rules.
        run = run if rule.code == UNUSED else replace(run, rules=(rule,))
        found = check_run(run)
        outcome = fix_in_memory(run, unsafe=True, previous=found)
        faults = [str(fault) for fault in (*found.faults, *outcome.analysis.faults)]
        codes = {finding.code for finding in found.findings} | set(faults)
        return codes, outcome.changes[0].after.text if outcome.changes else text
