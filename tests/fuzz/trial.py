"""Fix one program, run it before and after, and compare."""

from __future__ import annotations

import ast
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remat_migrate.engine.check import fix_in_memory
from remat_migrate.engine.run import prepare
from remat_migrate.errors import UnreadableCodeError
from remat_migrate.settings import Options

from .execution import Results, Texts, Workers, difference

# Rules for code that fails under JAX or has another meaning; other rules are about memory and time.
BREAKING = ("RMT000", "RMT1", "RMT2", "RMT4", "RMT5")


class Wrong(AssertionError):
    """A violated property: a bug in the tool or in this fuzzer."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A program after all fixes, with the remaining findings as `CODE path:offset: message`."""

    texts: dict[str, str]
    findings: tuple[str, ...]

    @property
    def breaking(self) -> list[str]:
        """The remaining findings of code that fails or has another meaning."""
        return [found for found in self.findings if found.startswith(BREAKING)]


class Trial:
    """Tries programs.

    Attributes:
        counts: how many programs were tried, fixed, and executed.
    """

    def __init__(self, folder: Path, workers: Workers) -> None:
        self.counts: Counter[str] = Counter()
        self._folder = folder.resolve() / "project"
        self._workers = workers

    def __call__(self, texts: Texts, *, unsafe: bool = False) -> None:
        """Try one program.

        Args:
            texts: its modules; the functions to run are in `main.py`.
            unsafe: whether to try the unsafe fixes, too.

        Raises:
            Wrong: a property is violated.
        """
        self.counts["tried"] += 1
        self._workers.old.ask(texts)
        try:
            safe = self.fixed(texts)
            unsafely = self.fixed(texts, unsafe=True) if unsafe else safe
        finally:
            before = self._workers.old.answer()
        self.counts["fixed"] += safe.texts != texts
        expected = {name: found for name, found in before.get("uses", {}).items() if _ran(found)}
        self.counts["executed"] += bool(expected)
        self._compare(texts, safe, expected)
        if unsafely.texts != safe.texts:
            self._compare(texts, unsafely, expected)

    def fixed(self, texts: Texts, *, unsafe: bool = False) -> Fixed:
        """Fix a program and check all that can be checked without running it.

        Raises:
            Wrong: a rule failed; a fix was wrong or fixes oscillate; the new text does not parse; a
                second fix changes something or finds something else.
        """
        once = self._fixed(texts, unsafe)
        for name, text in once.texts.items():
            try:
                ast.parse(text)
            except SyntaxError as error:
                raise Wrong(f"{name} no longer parses: {error}\n{text}") from error
        if self._fixed(once.texts, unsafe) != once:
            raise Wrong(f"a second fix changes or finds something else\n{shown(once.texts)}")
        return once

    def _fixed(self, texts: Texts, unsafe: bool) -> Fixed:
        shutil.rmtree(self._folder, ignore_errors=True)
        for name, text in {**texts, "pyproject.toml": ""}.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        outcome = fix_in_memory(prepare([self._folder], Options()), unsafe=unsafe)
        if outcome.analysis.faults:
            raise Wrong(f"a rule failed: {outcome.analysis.faults[0].trace}")
        for dropped in outcome.dropped:
            fix = dropped.finding.fix
            # If LibCST cannot parse the code, the finding remains.
            if fix is None or not isinstance(fix.written[1], UnreadableCodeError):
                raise Wrong(f"a fix was wrong: {dropped.finding.code} {dropped.reason}")
        if outcome.oscillating:
            raise Wrong(f"fixes that oscillate: {[path.name for path in outcome.oscillating]}")
        after = dict(texts)
        for change in outcome.changes:
            after[change.path.relative_to(self._folder).as_posix()] = change.after.text
        found = outcome.analysis.findings
        return Fixed(
            after, tuple(f"{f.code} {f.path.name}:{f.span.start}: {f.message}" for f in found)
        )

    def _compare(self, texts: Texts, fixed: Fixed, expected: dict[str, Any]) -> None:
        """Run the fixed program and compare.

        If a finding remains, `concrete=True` keeps its old meaning. A use may fail or differ only
        if it does the same without the fixes and with that meaning: then it was wrong before.
        """
        after = {**texts, **fixed.texts}
        worker = self._workers.mixed if fixed.breaking else self._workers.new
        worker.ask(after)
        found = worker.answer()
        other = {n: one for n, one in expected.items() if not _same(one, _result(found, n))}
        if not other:
            return
        worker.ask(after, other)
        self._workers.old.ask(texts, other)
        found, old = worker.answer(), self._workers.old.answer()
        problems = {n: _problem(_result(old, n), _result(found, n)) for n in other}
        if not any(problems.values()):
            return
        self._workers.mixed.ask(texts, other)
        unfixed = self._workers.mixed.answer()
        for name, problem in problems.items():
            if problem and _problem(_result(old, name), _result(unfixed, name)) is None:
                raise Wrong(f"{name} {problem}\nleft: {fixed.breaking}\n{shown(after)}")


def _result(found: Results, name: str) -> Results:
    uses: Results = found.get("uses", {})
    result: Results = uses.get(name) or {"failed": found.get("failed", "it is gone")}
    return result


def _same(expected: Results, actual: Results) -> bool:
    """Return whether both are the same program."""
    return "program" in expected and expected == actual


def _problem(expected: Results, actual: Results) -> str | None:
    if not _ran(expected):
        return None  # it can only be traced
    if not _ran(actual):
        return f"fails after the fix: {actual['failed']}"
    differs = difference(expected, actual)
    return f"result differs: {differs}" if differs else None


def _ran(result: Results) -> bool:
    return "leaves" in result or "program" in result


def shown(texts: Texts) -> str:
    """Format a program for display."""
    return "\n".join(f"---- {name}\n{text}" for name, text in texts.items() if text)
