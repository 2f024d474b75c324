"""Applying fixes in memory, in rounds, until none is left.

Nothing here reads or writes files: a function analyses the current texts, and the result holds new
texts, which `journal.write_changes` writes to disk.
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
    """The findings in the current texts."""

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings, with fixes whose offsets refer to the analysed texts."""

    def source(self, path: Path) -> SourceFile:
        """Return the analysed text of a file.

        Raises:
            SourceError: the file cannot be read.
        """


A = TypeVar("A", bound=Analysis)


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file before and after all rounds.

    Attributes:
        before: the file before.
        after: the file after.
        together: the files that share a fix with this one, including itself. They must be written
            together, because a fix is applied as a whole or not at all.
    """

    before: SourceFile
    after: SourceFile
    together: frozenset[Path]

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.before.path


@dataclass(frozen=True, slots=True)
class Applied:
    """A finding whose fix was applied.

    Attributes:
        finding: the finding as of its round.
        round: the number of the round, from 1.
        texts: the edited files, before the round and with only this fix.
    """

    finding: Finding
    round: int
    texts: Mapping[Path, tuple[SourceFile, SourceFile]]


class Contradiction(str):
    """Why a fix cannot be written: its changes contradict one another, or LibCST cannot parse the
    code. The finding is left to be fixed by hand.
    """


@dataclass(frozen=True, slots=True)
class Dropped:
    """A finding whose fix was not made, and why.

    It is a bug in the rule, unless the reason is an `EncodingFault` or a `Contradiction`.

    The finding is that of the final analysis if it is still there.
    """

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A finding whose fix was not applied because files must not be edited."""

    finding: Finding
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class FixOutcome(Generic[A]):
    """The result of applying fixes.

    Attributes:
        analysis: the analysis of the final texts, with the remaining findings.
        changes: the changed files, by path.
        applied: the applied fixes, in order.
        fixed: the findings of the first analysis that are fixed. Findings that only a fix revealed
            are not counted.
        dropped: the fixes that are wrong.
        refused: the fixes that would edit files that must not be edited.
        oscillating: files whose fixes revert each other or never end. They are unchanged; such
            rules have a bug.
    """

    analysis: A
    changes: tuple[FileChange, ...]
    applied: tuple[Applied, ...]
    fixed: tuple[Finding, ...]
    dropped: tuple[Dropped, ...]
    refused: tuple[Refused, ...]
    oscillating: tuple[Path, ...] = ()


def fix_to_fixed_point(
    analyse: Callable[[Mapping[Path, SourceFile]], A],
    allowed: frozenset[Safety],
    editable: Callable[[Path], bool] = lambda path: True,
    withheld: Callable[[Finding], bool] = lambda finding: False,
    max_rounds: int = 10,
) -> FixOutcome[A]:
    """Apply fixes and analyse again until there is nothing left to fix.

    Each round applies as many fixes without conflicts as possible, in the order of their findings.
    Then every changed file is checked, and fixes that break one are dropped. If the text of a file
    recurs or never settles, everything starts over without that file.

    Args:
        analyse: analyses the code, with the given texts in place of those on disk.
        allowed: the safety of fixes to apply; manual fixes never are.
        editable: whether a file may be edited; called once per file.
        withheld: whether to skip the fix of a finding.
        max_rounds: the number of rounds that may pass without reducing the number of fixes left.
    """
    may_edit = cache(editable)
    oscillating: frozenset[Path] = frozenset()
    while True:
        rounds = _Rounds(analyse, allowed, may_edit, withheld, oscillating, max_rounds)
        more = rounds.run()
        if not more:
            return rounds.outcome()
        oscillating |= more


@dataclass(slots=True)
class _DroppedAt:
    """A dropped fix, and the current offset of its finding."""

    finding: Finding
    reason: str
    offset: int

    @property
    def key(self) -> tuple[str, Path, int]:
        return self.finding.code, self.finding.path, self.offset


@dataclass(slots=True)
class _Round:
    """The fixes of one round and the texts that they produce."""

    texts: dict[Path, SourceFile] = field(default_factory=dict)
    edits: dict[Path, list[Edit]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


class _Rounds(Generic[A]):
    """All rounds over the files that do not oscillate."""

    def __init__(
        self,
        analyse: Callable[[Mapping[Path, SourceFile]], A],
        allowed: frozenset[Safety],
        may_edit: Callable[[Path], bool],
        withheld: Callable[[Finding], bool],
        oscillating: frozenset[Path],
        max_rounds: int,
    ) -> None:
        self._analyse = analyse
        self._allowed = allowed - {Safety.MANUAL}
        self._may_edit = may_edit
        self._withheld = withheld
        self._oscillating = oscillating
        self._max_rounds = max_rounds
        self._before: dict[Path, SourceFile] = {}
        self._texts: dict[Path, SourceFile] = {}
        self._seen: dict[Path, set[str]] = defaultdict(set)
        self._applied: list[Applied] = []
        self._dropped: list[_DroppedAt] = []
        self._analysis = analyse({})
        # The findings of the first analysis that are not fixed yet, with their current offsets.
        self._pending = [(finding, finding.span.start) for finding in self._wanted()]
        self._fixed: list[Finding] = []

    def run(self) -> frozenset[Path]:
        """Apply all fixes, or stop and return the files that oscillate."""
        number = stalled = 0
        fewest: int | None = None
        while findings := self._fixable():
            number += 1
            stalled = stalled + 1 if fewest is not None and len(findings) >= fewest else 0
            fewest = len(findings) if fewest is None else min(fewest, len(findings))
            made = self._make(self._choose(findings))
            if oscillating := self._oscillating_files(made, stalled >= self._max_rounds):
                return oscillating
            self._accept(made, number)
        return frozenset()

    def _oscillating_files(self, made: _Round, is_last: bool) -> frozenset[Path]:
        """Return files whose text recurs; in the last round, those that changed most often."""
        changed = [p for p, new in made.texts.items() if new.text != self._source(p).text]
        recurring = frozenset(p for p in changed if made.texts[p].text in self._seen[p])
        if recurring or not is_last:
            return recurring
        most = max((len(self._seen[path]) for path in changed), default=0)
        return frozenset(path for path in changed if len(self._seen[path]) == most)

    def outcome(self) -> FixOutcome[A]:
        now = {_key(finding): finding for finding in self._analysis.findings}
        together = _components([_paths(applied.finding) for applied in self._applied])
        return FixOutcome(
            self._analysis,
            tuple(
                FileChange(self._before[path], new, together[path])
                for path, new in sorted(self._texts.items())
                if new.text != self._before[path].text
            ),
            tuple(self._applied),
            tuple(self._fixed),
            tuple(Dropped(now.get(one.key, one.finding), one.reason) for one in self._dropped),
            self._refused(),
            tuple(sorted(self._oscillating)),
        )

    # -- choosing fixes

    def _wanted(self) -> list[Finding]:
        """Return the findings to fix if their files may be edited, in order."""
        dropped = {one.key for one in self._dropped}
        return sorted(
            (
                finding
                for finding in self._analysis.findings
                if finding.fix is not None
                and finding.fix.is_automatic
                and finding.fix.safety in self._allowed
                and _key(finding) not in dropped
                and not self._withheld(finding)
                and self._oscillating.isdisjoint(_paths(finding))
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
        return tuple(one for one in refused if one.paths)

    def _choose(self, findings: list[Finding]) -> list[Finding]:
        """Return the findings whose fixes do not conflict with those of earlier ones."""
        taken: dict[Path, list[Edit]] = defaultdict(list)
        chosen: list[Finding] = []
        for finding in findings:
            edits = _edits(finding)
            if reason := self._flaw(finding):
                self._drop(finding, reason)
            elif not any(_conflicts(edit, taken[edit.path]) for edit in edits):
                chosen.append(finding)
                for edit in edits:
                    if edit not in taken[edit.path]:
                        bisect.insort(taken[edit.path], edit)
        return chosen

    def _flaw(self, finding: Finding) -> str | None:
        """Return why a fix cannot be applied even on its own."""
        if finding.fix and finding.fix.failure:
            return Contradiction(finding.fix.failure)
        try:
            texts = self._apply_alone(finding)
        except (ApplyError, SourceError) as error:
            return Contradiction(error)
        if all(self._source(path).text == new.text for path, new in texts.items()):
            return "the fix changes nothing"
        return None

    def _drop(self, finding: Finding, reason: str) -> None:
        self._dropped.append(_DroppedAt(finding, reason, finding.span.start))

    # -- applying fixes

    def _source(self, path: Path) -> SourceFile:
        return self._texts.get(path) or self._analysis.source(path)

    def _apply_alone(self, finding: Finding) -> dict[Path, SourceFile]:
        """Return the files that one fix edits, with only that fix."""
        texts = {}
        for path, edits in itertools.groupby(_edits(finding), lambda edit: edit.path):
            source = self._source(path)
            texts[path] = source.replaced(apply_edits(source.text, list(edits)))
        return texts

    def _make(self, chosen: list[Finding]) -> _Round:
        """Apply fixes together; if that breaks a file, apply the fixes that edit it one by one."""
        made, faults = self._try(chosen)
        if not faults:
            return made
        kept = [finding for finding in chosen if _paths(finding).isdisjoint(faults)]
        for finding in chosen:
            if _paths(finding).isdisjoint(faults):
                continue
            if not self._try([*kept, finding], _paths(finding))[1]:
                kept.append(finding)
            # A fix that only breaks together with others is left for the next round.
            elif alone := self._try([finding])[1]:
                path, reason = next(iter(alone.items()))
                at = "" if path == finding.path else f"{path}: "
                self._drop(finding, type(reason)(at + reason))
        return self._try(kept, frozenset())[0]

    def _try(
        self, findings: list[Finding], suspects: frozenset[Path] | None = None
    ) -> tuple[_Round, dict[Path, str]]:
        """Apply fixes and return the result, and what is wrong with it by file.

        Args:
            findings: the findings to fix, without conflicts.
            suspects: the files to check; None for all changed files.
        """
        made = _Round(findings=findings)
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

    # -- between rounds

    def _accept(self, made: _Round, number: int) -> None:
        for finding in made.findings:
            alone = self._apply_alone(finding).items()
            texts = {path: (self._source(path), new) for path, new in alone}
            self._applied.append(Applied(finding, number, texts))
        for path, new in made.texts.items():
            old = self._source(path)
            self._before.setdefault(path, old)
            self._seen[path] |= {old.text, new.text}
        self._texts |= made.texts
        for dropped in self._dropped:
            if edits := made.edits.get(dropped.finding.path):
                dropped.offset = OffsetMap(edits).moved(dropped.offset)
        if made.findings:
            self._analysis = self._analyse(dict(self._texts))
            self._update_pending(made)

    def _update_pending(self, made: _Round) -> None:
        """Move the pending findings to their new offsets, and record those that are fixed."""
        starts: dict[tuple[str, Path], list[int]] = defaultdict(list)
        for code, path, offset in map(_key, self._analysis.findings):
            starts[code, path].append(offset)
        maps = {path: OffsetMap(edits) for path, edits in made.edits.items()}
        pending = []
        for finding, at in self._pending:
            candidates = starts[finding.code, finding.path]
            offsets = maps.get(finding.path, OffsetMap(()))
            first, last = offsets.spread(at)
            found = next((offset for offset in candidates if first <= offset <= last), None)
            if found is None:
                self._fixed.append(finding)
            else:
                candidates.remove(found)
                pending.append((finding, found))
        self._pending = pending


def _edits(finding: Finding) -> list[Edit]:
    return sorted(set(finding.fix.edits)) if finding.fix else []


def _paths(finding: Finding) -> frozenset[Path]:
    return finding.fix.paths if finding.fix else frozenset()


def _key(finding: Finding) -> tuple[str, Path, int]:
    return finding.code, finding.path, finding.span.start


def _order(finding: Finding) -> tuple[str, int, int, str, str, list[Edit]]:
    return (str(finding.path), *finding.span, finding.code, finding.message, _edits(finding))


def _conflicts(edit: Edit, taken: list[Edit]) -> bool:
    """Return whether an edit overlaps a different one of the sorted `taken`."""
    index = bisect.bisect_left(taken, edit)
    neighbors = taken[max(0, index - 1) : index + 1]
    return edit not in neighbors and any(edit.span.overlaps(other.span) for other in neighbors)


def _components(groups: Sequence[frozenset[Path]]) -> dict[Path, frozenset[Path]]:
    """Return the union of all directly or indirectly connected groups for each path."""
    found: dict[Path, frozenset[Path]] = {}
    for group in groups:
        union = group.union(*(found.get(path, frozenset()) for path in group))
        found |= dict.fromkeys(union, union)
    return found
