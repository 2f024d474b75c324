"""One checkpoint program: checked, mended, run before and after, compared; and what is counted."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from remat_migrate.analysis.sites.site import sites_of
from remat_migrate.rule import Finding

from .execution import Results, Texts, Workers, difference
from .properties import check_fixing
from .subject import Mended, Subject, Wrong, told

# What these rules find fails under JAX, or means another thing; others are about memory and time.
BREAKING = ("RMT000", "RMT1", "RMT2", "RMT4", "RMT5")
# The module of those whose code the tool does not see.
OUTSIDE = "outside.py"
# What a fix writes where a value is needed.
STEPS = ("static_argnums", "ensure_compile_time_eval", "def checkpointed")


@dataclass
class Counts:
    """What became of checkpoint programs.

    Attributes:
        generated: all of them.
        with_site: those in which a checkpoint was seen.
        with_finding: those of which a rule says that they fail, or mean another thing.
        fixed: those whose text the safe fixes changed.
        refused: those in which such a finding was left.
        discarded: those of which nothing can be run before.
        executed: those of which something was run before and after.
        equal: those of them that gave the same.
        uses: functions run before and after.
        unseen: uses that fail or differ as they did before, under what was no `concrete=True`, and
            of which nothing is said.
        unsafe: those that the unsafe fixes changed further, and that were run again.
        unsafe_equal: those of them that gave the same.
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
    """The tool and the workers that programs are tried with."""

    def __init__(
        self, subject: Subject, workers: Workers, counts: Counts, *, needless: bool = False
    ) -> None:
        """With `needless`, it is wrong to fix more than these runs need."""
        self.needless = needless
        self.subject = subject
        self.workers = workers
        self.counts = counts

    def __call__(self, texts: Texts, *, unsafe: bool) -> None:
        """Try one program.

        Args:
            texts: its modules; `main.py` and `outside.py`, of which the tool is not told, have
                the functions to run.
            unsafe: whether the unsafe fixes are tried, too.

        Raises:
            Wrong: something does not hold.
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
            # Public parameters may be gone: nobody outside the project can be told.
            outside = texts.get(OUTSIDE, "")
            inside = {n: found for n, found in expected.items() if f"def {n}(" not in outside}
            self._compare(texts, unsafely, inside)
            counts.unsafe_equal += 1

    def _compare(self, texts: Texts, mended: Mended, expected: dict[str, Any]) -> None:
        """Run what was mended, and compare.

        Where a finding is left, `concrete=True` keeps its old meaning. A use may fail, or give
        something else, only where it does the same without the fixes and with that meaning: it was
        wrong all along.
        """
        after = {**texts, **{name: data.decode() for name, data in mended.files.items()}}
        left = breaking(mended)
        worker = self.workers.mixed if left else self.workers.new
        worker.ask(after)
        found = worker.answer()
        unmended: Results | None = None
        for name, before in expected.items():
            problem = _problem(before, _result(found, name))
            if problem is None:
                continue
            if unmended is None:
                self.workers.mixed.ask(texts)
                unmended = self.workers.mixed.answer()
            if _problem(before, _result(unmended, name)) is None:
                raise Wrong(f"{name} {problem}\nleft: {left}\n{shown(after)}")
            self.counts.unseen += not left

    def _check_needed(self, texts: Texts, mended: Mended, expected: dict[str, Any]) -> None:
        before = "".join(texts.values())
        after = "".join(data.decode() for data in mended.files.values())
        more = [word for word in STEPS if after.count(word) > before.count(word)]
        left = breaking(mended)
        if not more and not left:
            return
        self.workers.dropped.ask(texts)
        found = self.workers.dropped.answer()
        if all(_problem(before, _result(found, name)) is None for name, before in expected.items()):
            after = shown({name: data.decode() for name, data in mended.files.items()})
            raise Wrong(f"runs without {more or 'a finding'}\nleft: {left}\n{after}")


def _result(found: Results, name: str) -> Results:
    uses: Results = found.get("uses", {})
    result: Results = uses.get(name) or {"failed": found.get("failed", "it is gone")}
    return result


def _problem(expected: Results, actual: Results) -> str | None:
    if not _ran(actual):
        return f"fails now: {actual['failed']}"
    differs = difference(expected, actual)
    return f"gives something else: {differs}" if differs else None


def breaking(mended: Mended) -> list[str]:
    """The findings that are left of those that say that the code fails or means another thing."""
    return [told(finding) for finding in mended.outcome.analysis.findings if _breaks(finding)]


def _breaks(finding: Finding) -> bool:
    return finding.code.startswith(BREAKING)


def _ran(result: Results) -> bool:
    return "leaves" in result


def shown(texts: Texts) -> str:
    """A program for a reader."""
    return "\n".join(f"---- {name}\n{text}" for name, text in texts.items() if text)
