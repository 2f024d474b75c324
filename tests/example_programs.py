"""The rules' examples as programs to run under JAX, with the expected outcome per release."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from more_examples import right_examples, wrong_examples

from remat_migrate.engine.rules import load_rules
from remat_migrate.rule import Example, Fails, Rule

RUNNER = Path(__file__).parent / "behaviour" / "run_examples.py"
MATTERS = ("use", "fails", "shows", "holds")


@dataclass(frozen=True)
class Program:
    """One program of an example.

    Attributes:
        name: the rule's code, the example and which of its texts.
        files: the files by path.
        main: the file to execute.
        use: code to execute after it.
        fails: the expected failure, in the releases it applies to.
        asserted: what must be true after `use` if it does not fail.
    """

    name: str
    files: Mapping[str, str]
    main: str
    use: str
    fails: Fails | None
    asserted: str

    def should_fail(self, jax: str) -> bool:
        """Return whether the program should fail in a release of jax."""
        if self.fails is None:
            return False
        return _version(self.fails.since) <= _version(jax)

    def is_right(self, jax: str, outcome: str) -> bool:
        """Return whether the outcome is the expected one."""
        if self.should_fail(jax):
            assert self.fails is not None
            return bool(re.search(self.fails.error, outcome, re.DOTALL))
        return not outcome


def programs() -> Iterator[Program]:
    """Return the programs of all examples that have code to run."""
    for rule in load_rules():
        for number, example in enumerate(wrong_examples(rule), 1):
            if is_run(example):
                yield from _wrong(rule, number, example)
        for number, right in enumerate(right_examples(rule), 1):
            if is_run(right):
                files = {right.filename: right.before}
                name = f"{rule.code} right {number}"
                yield Program(name, files, right.filename, right.use, None, right.holds)


def is_run(example: Example) -> bool:
    """Return whether an example has code to run."""
    return any(getattr(example, name) for name in MATTERS)


def run(interpreter: str, chosen: Sequence[Program], env: Mapping[str, str]) -> tuple[str, dict]:
    """Return the interpreter's version of JAX, and the outcome of each program under it."""
    with tempfile.TemporaryDirectory() as folder:
        listed, outcomes = Path(folder, "programs.json"), Path(folder, "outcomes.json")
        rows: list[dict[str, object]] = []
        for program in chosen:
            row = {"files": program.files, "main": program.main}
            rows.append({**row, "name": program.name, "then": [program.use]})
            if program.asserted:
                then = [program.use, program.asserted]
                rows.append({**row, "name": f"{program.name} asserted", "then": then})
        listed.write_text(json.dumps(rows), encoding="utf-8")
        command = [interpreter, str(RUNNER), str(listed), str(outcomes)]
        subprocess.run(command, check=True, env=dict(env))
        found = json.loads(outcomes.read_text(encoding="utf-8"))
    ended = found["outcomes"]
    return found["jax"], {
        program.name: ended[program.name]
        if program.should_fail(found["jax"])
        else ended.get(f"{program.name} asserted", ended[program.name])
        for program in chosen
    }


def _wrong(rule: Rule, number: int, example: Example) -> Iterator[Program]:
    before = {example.filename: example.before}
    name, main, use = f"{rule.code} wrong {number}", example.filename, example.use
    yield Program(f"{name} before", before, main, use, example.fails, example.shows)
    if example.after is not None:
        yield Program(f"{name} after", {main: example.after}, main, use, None, example.holds)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])
