"""Findings to new text: which fixes are made, round by round, until none is left.

Nothing here reads or writes a file. What to look at, the findings in it and what may be edited come
in as functions; new texts go out. `journal.write_changes` puts them on disk.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from ..errors import ApplyError, SourceError
from ..rule import Finding, Safety, fixes_by_path, joint_edits
from ..text import Edit, OffsetMap, SourceFile, apply_edits
from .integrity import check_integrity


class Analysis(Protocol):
    """What one look at the code found."""

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings, with fixes whose offsets are those of the texts looked at."""

    def source(self, path: Path) -> SourceFile:
        """The text of a file as it was looked at.

        Raises:
            SourceError: it cannot be read.
        """


A = TypeVar("A", bound=Analysis)


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after all rounds.

    `together` are the files that share a fix with this one, itself among them: if one of them
    cannot be written, none may be, for a fix is made whole or not at all.
    """

    before: SourceFile
    after: SourceFile
    together: frozenset[Path]

    @property
    def path(self) -> Path:
        """The file."""
        return self.before.path


@dataclass(frozen=True, slots=True)
class Applied:
    """A finding whose fix was made.

    Attributes:
        finding: as it was found in its round.
        round: which one, counted from 1.
        texts: the files that the fix edits, before the round and with this fix alone.
    """

    finding: Finding
    round: int
    texts: Mapping[Path, tuple[SourceFile, SourceFile]]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A finding whose fix is wrong, and why: a defect of the rule, not of the user's code.

    The finding is the one of the final analysis where that still has it.
    """

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A finding whose fix would be made, did it not edit files that must not be edited."""

    finding: Finding
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Outcome(Generic[A]):
    """What came of the fixes.

    Attributes:
        analysis: of the final texts; its findings are what is left to report.
        changes: the files that differ, by path.
        applied: the fixes made, in order.
        fixed: the findings of the first analysis that had a fix and are gone. A finding that a
            fix of an earlier round revealed is not among them, so this number is at most the one
            that the analysis called fixable.
        dropped: the fixes found to be wrong and not made.
        refused: the fixes not made for want of leave to edit a file.
        unsettled: files whose fixes undid one another or had no end. They are as they were: rules
            that contradict each other are a defect of the tool.
    """

    analysis: A
    changes: tuple[Change, ...]
    applied: tuple[Applied, ...]
    fixed: tuple[Finding, ...]
    dropped: tuple[Dropped, ...]
    refused: tuple[Refused, ...]
    unsettled: tuple[Path, ...] = ()

    @property
    def remaining(self) -> Sequence[Finding]:
        """The findings of the final texts."""
        return self.analysis.findings

    @property
    def converged(self) -> bool:
        """Whether the fixes of every file came to an end."""
        return not self.unsettled


def fix_to_fixed_point(
    analyse: Callable[[Mapping[Path, SourceFile]], A],
    allowed: frozenset[Safety],
    editable: Callable[[Path], bool] = lambda path: True,
    withheld: Callable[[Finding], bool] = lambda finding: False,
    max_rounds: int = 10,
) -> Outcome[A]:
    """Make fixes, look again, and go on until there is nothing left to fix.

    Each round makes a maximal set of fixes of which no two touch the same text; the fix of the
    finding that stands first goes first. After a round every changed file is checked; a fix that
    breaks one is dropped. Files whose text comes back to what it was, or does not come to rest, are
    left out, and all starts again without them.

    Args:
        analyse: gives the findings of the code, with the given texts in place of those on disk.
        allowed: the safety of the fixes to be made; MANUAL ones never are.
        editable: whether a file may be edited. Asked before a fix is chosen, once per file.
        withheld: whether the fix of a finding must not be made.
        max_rounds: how many rounds may pass without fewer fixes left to make than ever before.
    """
    may_edit = cache(editable)
    unsettled: frozenset[Path] = frozenset()
    while True:
        rounds = _Rounds(analyse, allowed, may_edit, withheld, unsettled, max_rounds)
        restless = rounds.run()
        if not restless:
            return rounds.outcome()
        unsettled |= restless


@dataclass(slots=True)
class _DroppedAt:
    """A dropped fix, and where its finding stands now."""

    finding: Finding
    reason: str
    offset: int

    @property
    def key(self) -> tuple[str, Path, int]:
        return self.finding.code, self.finding.path, self.offset


@dataclass(slots=True)
class _Round:
    """The fixes that go together in one round, and the texts they give."""

    texts: dict[Path, SourceFile] = field(default_factory=dict)
    edits: dict[Path, list[Edit]] = field(default_factory=dict)
    made: list[Finding] = field(default_factory=list)


class _Rounds(Generic[A]):
    """One run of rounds over all files but the unsettled ones."""

    def __init__(
        self,
        analyse: Callable[[Mapping[Path, SourceFile]], A],
        allowed: frozenset[Safety],
        may_edit: Callable[[Path], bool],
        withheld: Callable[[Finding], bool],
        unsettled: frozenset[Path],
        max_rounds: int,
    ) -> None:
        self._analyse = analyse
        self._allowed = allowed - {Safety.MANUAL}
        self._may_edit = may_edit
        self._withheld = withheld
        self._unsettled = unsettled
        self._max_rounds = max_rounds
        self._before: dict[Path, SourceFile] = {}
        self._texts: dict[Path, SourceFile] = {}
        self._seen: dict[Path, set[str]] = defaultdict(set)
        self._applied: list[Applied] = []
        self._dropped: list[_DroppedAt] = []
        self._analysis = analyse({})
        # The findings of the first analysis that are to be fixed, and where they stand now.
        self._pending = [(finding, finding.span.start) for finding in self._wanted()]
        self._fixed: list[Finding] = []

    def run(self) -> frozenset[Path]:
        """Make fixes to the end. Returns the files that have none, or nothing if all is well."""
        number = stalled = 0
        fewest: int | None = None
        while findings := self._fixable():
            number += 1
            stalled = stalled + 1 if fewest is not None and len(findings) >= fewest else 0
            fewest = len(findings) if fewest is None else min(fewest, len(findings))
            made = self._make(self._choose(findings))
            if restless := self._restless(made, stalled >= self._max_rounds):
                return restless
            self._accept(made, number)
        return frozenset()

    def _restless(self, made: _Round, is_last: bool) -> frozenset[Path]:
        """Files that come back to an earlier text; in the last round those changed most often."""
        changed = [p for p, new in made.texts.items() if new.text != self._source(p).text]
        again = frozenset(p for p in changed if made.texts[p].text in self._seen[p])
        if again or not is_last:
            return again
        most = max((len(self._seen[path]) for path in changed), default=0)
        return frozenset(path for path in changed if len(self._seen[path]) == most)

    def outcome(self) -> Outcome[A]:
        """What the rounds gave."""
        now = {_key(finding): finding for finding in self._analysis.findings}
        return Outcome(
            self._analysis,
            self._changes(),
            tuple(self._applied),
            tuple(self._fixed),
            tuple(
                Dropped(now.get(dropped.key, dropped.finding), dropped.reason)
                for dropped in self._dropped
            ),
            self._refused(),
            tuple(sorted(self._unsettled)),
        )

    # -- which fixes

    def _wanted(self) -> list[Finding]:
        """The findings whose fix is to be made if its files may be edited, in a fixed order."""
        tried = {dropped.key for dropped in self._dropped}
        return sorted(
            (
                finding
                for finding in self._analysis.findings
                if finding.fix is not None
                and finding.fix.is_automatic
                and finding.fix.safety in self._allowed
                and _key(finding) not in tried
                and not self._withheld(finding)
                and self._unsettled.isdisjoint(_paths(finding))
            ),
            key=_order,
        )

    def _fixable(self) -> list[Finding]:
        return [f for f in self._wanted() if all(map(self._may_edit, _paths(f)))]

    def _refused(self) -> tuple[Refused, ...]:
        refused = (
            Refused(finding, tuple(p for p in sorted(_paths(finding)) if not self._may_edit(p)))
            for finding in self._wanted()
        )
        return tuple(item for item in refused if item.paths)

    def _choose(self, findings: list[Finding]) -> list[Finding]:
        """A maximal set without conflicts: each finding whose fix has none with those before."""
        taken: dict[Path, list[Edit]] = defaultdict(list)
        chosen: list[Finding] = []
        for finding in findings:
            edits = _edits(finding)
            if reason := (finding.fix and finding.fix.failure) or self._flaw(finding):
                self._drop(finding, reason)
            elif not any(_conflicts(edit, taken[edit.path]) for edit in edits):
                chosen.append(finding)
                for edit in edits:
                    if edit not in taken[edit.path]:
                        bisect.insort(taken[edit.path], edit)
        return chosen

    def _flaw(self, finding: Finding) -> str | None:
        """Why a fix cannot be made even by itself."""
        try:
            texts = self._alone(finding)
        except (ApplyError, SourceError) as error:
            return str(error)
        if all(self._source(path).text == new.text for path, new in texts.items()):
            return "the fix changes nothing"
        return None

    def _drop(self, finding: Finding, reason: str) -> None:
        self._dropped.append(_DroppedAt(finding, reason, finding.span.start))

    # -- what they give

    def _source(self, path: Path) -> SourceFile:
        return self._texts.get(path) or self._analysis.source(path)

    def _alone(self, finding: Finding) -> dict[Path, SourceFile]:
        """The texts that one fix gives."""
        texts = {}
        for path, edits in itertools.groupby(_edits(finding), lambda edit: edit.path):
            source = self._source(path)
            texts[path] = source.replaced(apply_edits(source.text, list(edits)))
        return texts

    def _make(self, chosen: list[Finding]) -> _Round:
        """Make the fixes at once; if that breaks a file, one by one those that touch it."""
        made, faults = self._try(chosen)
        if not faults:
            return made
        kept = [finding for finding in chosen if _paths(finding).isdisjoint(faults)]
        for finding in chosen:
            if _paths(finding).isdisjoint(faults):
                continue
            if not self._try([*kept, finding], _paths(finding))[1]:
                kept.append(finding)
            # One that is right alone but not beside the others waits for the next round.
            elif alone := self._try([finding])[1]:
                path, reason = next(iter(alone.items()))
                self._drop(finding, reason if path == finding.path else f"{path}: {reason}")
        return self._try(kept, frozenset())[0]

    def _try(
        self, findings: list[Finding], suspects: frozenset[Path] | None = None
    ) -> tuple[_Round, dict[Path, str]]:
        """The texts that fixes give, and what is wrong with them, by file.

        Args:
            findings: whose fixes to make, none conflicting.
            suspects: the files to check; all that change if None.
        """
        made = _Round(made=findings)
        faults = {}
        for path, fixes in fixes_by_path(f.fix for f in findings if f.fix).items():
            source = self._source(path)
            try:
                edits = sorted(joint_edits(path, fixes))
                text = apply_edits(source.text, edits)
            except ApplyError as error:
                faults[path] = str(error)
                continue
            made.texts[path], made.edits[path] = source.replaced(text), edits
            if suspects is None or path in suspects:
                reason = check_integrity(source, text, edits)
                if reason is not None:
                    faults[path] = reason
        return made, faults

    def _accept(self, made: _Round, number: int) -> None:
        self._applied += (self._applied_fix(finding, number) for finding in made.made)
        for path, new in made.texts.items():
            old = self._source(path)
            self._before.setdefault(path, old)
            self._seen[path] |= {old.text, new.text}
        for path, new in made.texts.items():
            self._texts[path] = new
        for dropped in self._dropped:
            if edits := made.edits.get(dropped.finding.path):
                dropped.offset = OffsetMap(edits).moved(dropped.offset)
        if made.made:
            self._analysis = self._analyse(dict(self._texts))
            self._settle(made)

    def _settle(self, made: _Round) -> None:
        """Move the pending findings that are still there, and note those that are gone."""
        starts: dict[tuple[str, Path], list[int]] = defaultdict(list)
        for code, path, offset in map(_key, self._analysis.findings):
            starts[code, path].append(offset)
        maps = {path: OffsetMap(edits) for path, edits in made.edits.items()}
        pending = []
        for finding, at in self._pending:
            left = starts[finding.code, finding.path]
            moves = maps.get(finding.path, OffsetMap(()))
            first = last = moves.moved(at)
            if not moves.kept(at):
                # It may stand anywhere in the text that replaces its start.
                first, last = moves.before(at), moves.after(at)
            found = next((offset for offset in left if first <= offset <= last), None)
            if found is None:
                self._fixed.append(finding)
            else:
                left.remove(found)
                pending.append((finding, found))
        self._pending = pending

    def _applied_fix(self, finding: Finding, number: int) -> Applied:
        """A fix that is about to be made, with what it does by itself."""
        both = {path: (self._source(path), new) for path, new in self._alone(finding).items()}
        return Applied(finding, number, both)

    def _changes(self) -> tuple[Change, ...]:
        together = _components([_paths(applied.finding) for applied in self._applied])
        return tuple(
            Change(self._before[path], new, together[path])
            for path, new in sorted(self._texts.items())
            if new.text != self._before[path].text
        )


def _edits(finding: Finding) -> list[Edit]:
    return sorted(set(finding.fix.edits)) if finding.fix else []


def _paths(finding: Finding) -> frozenset[Path]:
    return finding.fix.paths if finding.fix else frozenset()


def _key(finding: Finding) -> tuple[str, Path, int]:
    return finding.code, finding.path, finding.span.start


def _order(finding: Finding) -> tuple[str, int, int, str, str, list[Edit]]:
    return (
        str(finding.path),
        *finding.span,
        finding.code,
        finding.message,
        _edits(finding),
    )


def _conflicts(edit: Edit, taken: list[Edit]) -> bool:
    """Whether an edit overlaps another one of those in order; the very same one does not."""
    index = bisect.bisect_left(taken, edit)
    beside = taken[max(0, index - 1) : index + 1]
    return edit not in beside and any(edit.span.overlaps(other.span) for other in beside)


def _components(groups: Sequence[frozenset[Path]]) -> dict[Path, frozenset[Path]]:
    """For each path the union of the groups that it is linked to."""
    found: dict[Path, frozenset[Path]] = {}
    for group in groups:
        union = group.union(*(found.get(path, frozenset()) for path in group))
        found |= dict.fromkeys(union, union)
    return found
