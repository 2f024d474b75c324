"""One checkpoint program: checked, fixed, run before and after, compared; and what is counted."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from remat_migrate.analysis.sites.find_sites import sites_of
from remat_migrate.rule import Finding

from .execution import Results, Texts, Workers, difference
from .properties import check_fixing
from .subject import FixedFiles, Subject, Wrong, described

# Rules for code that fails under JAX or has another meaning; other rules are about memory and time.
BREAKING = ("RMT000", "RMT1", "RMT2", "RMT4", "RMT5")
# The module with callers whose code the tool does not see.
OUTSIDE = "outside.py"
# What a fix writes where a concrete value is needed.
STEPS = ("static_argnums", "ensure_compile_time_eval", "def checkpointed")


@dataclass
class Counts:
    """Counters for checkpoint programs.

    Attributes:
        generated: all programs.
        with_site: programs with a detected checkpoint.
        with_finding: programs with a finding for code that fails or has another meaning.
        fixed: programs that the safe fixes changed.
        refused: programs in which such a finding remains.
        discarded: programs of which nothing runs before.
        executed: programs of which something ran before and after.
        equal: executed programs with equal results.
        uses: functions run before and after.
        unseen: uses that fail or differ as they did before, without `concrete=True` and without a
        finding.
        unsafe: programs that the unsafe fixes changed further, and that were run again.
        unsafe_equal: those of them with equal results.
    """

    generated: int = 0
    with_site: int = 0
    with_finding: int = 0
    fixed: int = 0
    refused: int = 0
    discarded: int = 0
    executed: int = 0
    equal: int = 0
    uses: int = 0
    unseen: int = 0
    unsafe: int = 0
    unsafe_equal: int = 0

    def __iadd__(self, other: Counts) -> Counts:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        return self

    def __str__(self) -> str:
        named = ((one.name.replace("_", " "), getattr(self, one.name)) for one in fields(self))
        return ", ".join(f"{value} {name}" for name, value in named)


class Trial:
    """The tool and the workers to try programs with."""

    def __init__(
        self, subject: Subject, workers: Workers, counts: Counts, *, needless: bool = False
    ) -> None:
        """With `needless`, fixing more than these runs need is wrong."""
        self.needless = needless
        self.subject = subject
        self.workers = workers
        self.counts = counts

    def __call__(self, texts: Texts, *, unsafe: bool) -> None:
        """Try one program.

        Args:
            texts: its modules; the functions to run are in `main.py` and in `outside.py`, which the
                tool
            does not see.
            unsafe: whether to try the unsafe fixes, too.

        Raises:
            Wrong: a property is violated.
        """
        counts = self.counts
        files = {n: text.encode() for n, text in texts.items() if n != OUTSIDE}
        counts.generated += 1
        self.workers.old.ask(texts)
        try:
            safe = check_fixing(self.subject, files)
            unsafely = check_fixing(self.subject, files, unsafe=True) if unsafe else None
        finally:
            before = self.workers.old.answer()
        counts.with_site += bool(sites_of(safe.outcome.analysis.project))
        counts.with_finding += bool(breaking(safe) or safe.outcome.applied)
        counts.fixed += safe.files != files
        counts.refused += bool(breaking(safe))
        expected = {name: found for name, found in before.get("uses", {}).items() if _ran(found)}
        if not expected:
            counts.discarded += 1
            return
        counts.executed += 1
        counts.uses += len(expected)
        self._compare(texts, safe, expected)
        counts.equal += 1
        if self.needless:
            self._check_needed(texts, safe, expected)
        if unsafely is not None and unsafely.files != safe.files:
            counts.unsafe += 1
            # Public parameters may be removed, and code outside the project cannot be updated.
            outside = texts.get(OUTSIDE, "")
            inside = {n: found for n, found in expected.items() if f"def {n}(" not in outside}
            self._compare(texts, unsafely, inside)
            counts.unsafe_equal += 1

    def _compare(self, texts: Texts, fixed: FixedFiles, expected: dict[str, Any]) -> None:
        """Run the fixed program and compare.

        If a finding remains, `concrete=True` keeps its old meaning. A use may fail or differ only
        if it does the same without the fixes and with that meaning: then it was wrong before.
        """
        after = {**texts, **{name: data.decode() for name, data in fixed.files.items()}}
        left = breaking(fixed)
        worker = self.workers.mixed if left else self.workers.new
        worker.ask(after)
        found = worker.answer()
        other = {n: one for n, one in expected.items() if not _same(one, _result(found, n))}
        if not other:
            return
        worker.ask(after, other)
        self.workers.old.ask(texts, other)
        found, old = worker.answer(), self.workers.old.answer()
        unmended: Results | None = None
        for name in other:
            before = _result(old, name)
            problem = _problem(before, _result(found, name))
            if problem is None:
                continue
            if unmended is None:
                self.workers.mixed.ask(texts, other)
                unmended = self.workers.mixed.answer()
            if _problem(before, _result(unmended, name)) is None:
                raise Wrong(f"{name} {problem}\nleft: {left}\n{shown(after)}")
            self.counts.unseen += not left

    def _check_needed(self, texts: Texts, fixed: FixedFiles, expected: dict[str, Any]) -> None:
        before = "".join(texts.values())
        after = "".join(data.decode() for data in fixed.files.values())
        more = [word for word in STEPS if after.count(word) > before.count(word)]
        left = breaking(fixed)
        if not more and not left:
            return
        self.workers.dropped.ask(texts, expected)
        self.workers.old.ask(texts, expected)
        found, old = self.workers.dropped.answer(), self.workers.old.answer()
        if all(_problem(_result(old, name), _result(found, name)) is None for name in expected):
            after = shown({name: data.decode() for name, data in fixed.files.items()})
            raise Wrong(f"runs without {more or 'a finding'}\nleft: {left}\n{after}")


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


def breaking(fixed: FixedFiles) -> list[str]:
    """Return the remaining findings of code that fails or has another meaning."""
    return [described(finding) for finding in fixed.outcome.analysis.findings if _breaks(finding)]


def _breaks(finding: Finding) -> bool:
    return finding.code.startswith(BREAKING)


def _ran(result: Results) -> bool:
    return "leaves" in result or "program" in result


def shown(texts: Texts) -> str:
    """Format a program for display."""
    return "\n".join(f"---- {name}\n{text}" for name, text in texts.items() if text)
