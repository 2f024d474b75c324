"""Applying fixes in memory, in rounds, until none is left.

Nothing here reads or writes files: a function analyses the current texts, and the result holds new
texts, which `journal.write_changes` writes to disk.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ..errors import ApplyError, SourceError
from ..rule import Finding, Fix, Safety, joint_edits
from ..text import Edit, SourceFile, apply_edits
from .analyse import Analysis
from .fingerprint import Key, key_of
from .integrity import Obstacle, check_integrity


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file before and after all rounds."""

    before: SourceFile
    after: SourceFile

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.before.path


@dataclass(frozen=True, slots=True)
class Applied:
    """A finding whose fix was applied.

    Attributes:
        finding: the finding as of its round.
        texts: the edited files, before the round and with only this fix.
    """

    finding: Finding
    texts: Mapping[Path, tuple[SourceFile, SourceFile]]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A finding whose fix was not made, and why.

    It is a bug in the rule, unless the reason is an `Obstacle`.
    """

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A finding whose fix was not applied because files must not be edited."""

    finding: Finding
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class FixOutcome:
    """The result of applying fixes.

    Attributes:
        analysis: the analysis of the final texts, with the remaining findings.
        changes: the changed files, by path.
        applied: the applied fixes, in order.
        dropped: the fixes that are wrong.
        refused: the fixes that would edit files that must not be edited.
        oscillating: files whose fixes revert each other or never end. They are unchanged; such
            rules have a bug.
    """

    analysis: Analysis
    changes: tuple[FileChange, ...]
    applied: tuple[Applied, ...]
    dropped: tuple[Dropped, ...]
    refused: tuple[Refused, ...]
    oscillating: tuple[Path, ...] = ()


def fix_to_fixed_point(
    analyse: Callable[[Mapping[Path, SourceFile]], Analysis],
    allowed: frozenset[Safety],
    editable: Callable[[Path], bool] = lambda path: True,
    withheld: Callable[[Finding], bool] = lambda finding: False,
    max_rounds: int = 10,
) -> FixOutcome:
    """Apply fixes and analyse again until there is nothing left to fix.

    Each round applies as many fixes without conflicts as possible, in the order of their findings.
    Then every changed file is checked, and fixes that break one are dropped. If the text of a file
    never settles, everything starts over without that file.

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
        if not (more := rounds.run()):
            return rounds.outcome()
        oscillating |= more


@dataclass(slots=True)
class _Rounds:
    """All rounds over the files that do not oscillate."""

    analyse: Callable[[Mapping[Path, SourceFile]], Analysis]
    allowed: frozenset[Safety]
    may_edit: Callable[[Path], bool]
    withheld: Callable[[Finding], bool]
    oscillating: frozenset[Path]
    max_rounds: int
    before: dict[Path, SourceFile] = field(default_factory=dict)
    texts: dict[Path, SourceFile] = field(default_factory=dict)
    applied: list[Applied] = field(default_factory=list)
    dropped: dict[Key, Dropped] = field(default_factory=dict)
    analysis: Analysis = field(init=False)

    def run(self) -> frozenset[Path]:
        """Apply all fixes, or stop and return the files that oscillate."""
        self.analysis = self.analyse({})
        stalled, fewest = 0, len(self._wanted()) + 1
        while findings := self._fixable():
            stalled = stalled + 1 if len(findings) >= fewest else 0
            fewest = min(fewest, len(findings))
            made, texts = self._make(self._choose(findings))
            if stalled > self.max_rounds:
                return frozenset(texts)
            self._accept(made, texts)
        return frozenset()

    def outcome(self) -> FixOutcome:
        return FixOutcome(
            self.analysis,
            tuple(
                FileChange(self.before[path], new)
                for path, new in sorted(self.texts.items())
                if new.text != self.before[path].text
            ),
            tuple(self.applied),
            tuple(self.dropped.values()),
            self._refused(),
            tuple(sorted(self.oscillating)),
        )

    # -- choosing fixes

    def _wanted(self) -> list[Finding]:
        """Return the findings to fix if their files may be edited, in order."""
        return sorted(
            (
                finding
                for finding in self.analysis.findings
                if finding.fix is not None
                and finding.fix.is_automatic
                and finding.fix.safety in self.allowed
                and key_of(finding) not in self.dropped
                and not self.withheld(finding)
                and self.oscillating.isdisjoint(_paths(finding))
            ),
            key=lambda finding: (finding.order, _edits(finding)),
        )

    def _fixable(self) -> list[Finding]:
        return [f for f in self._wanted() if all(map(self.may_edit, _paths(f)))]

    def _refused(self) -> tuple[Refused, ...]:
        refused = (
            Refused(finding, tuple(p for p in sorted(_paths(finding)) if not self.may_edit(p)))
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
        if finding.fix and (error := finding.fix.written[1]):
            return Obstacle(error)
        try:
            texts = self._apply_alone(finding)
        except (ApplyError, SourceError) as error:
            return Obstacle(error)
        if all(self._source(path).text == new.text for path, new in texts.items()):
            return "the fix changes nothing"
        return None

    def _drop(self, finding: Finding, reason: str) -> None:
        self.dropped[key_of(finding)] = Dropped(finding, reason)

    # -- applying fixes

    def _source(self, path: Path) -> SourceFile:
        return self.texts.get(path) or self.analysis.source(path)

    def _apply_alone(self, finding: Finding) -> dict[Path, SourceFile]:
        """Return the files that one fix edits, with only that fix."""
        texts = {}
        for path, edits in itertools.groupby(_edits(finding), lambda edit: edit.path):
            source = self._source(path)
            texts[path] = source.replaced(apply_edits(source.text, list(edits)))
        return texts

    def _make(self, chosen: list[Finding]) -> tuple[list[Finding], dict[Path, SourceFile]]:
        """Apply fixes together; if that breaks a file, apply the fixes that edit it one by one."""
        texts, faults = self._try(chosen)
        if not faults:
            return chosen, texts
        kept = [finding for finding in chosen if _paths(finding).isdisjoint(faults)]
        for finding in chosen:
            if _paths(finding).isdisjoint(faults):
                continue
            near = [one for one in kept if not _paths(one).isdisjoint(_paths(finding))]
            if not self._try([*near, finding])[1]:
                kept.append(finding)
            # A fix that only breaks together with others is left for the next round.
            elif alone := self._try([finding])[1]:
                path, reason = next(iter(alone.items()))
                at = "" if path == finding.path else f"{path}: "
                self._drop(finding, type(reason)(at + reason))
        return kept, self._try(kept)[0]

    def _try(self, findings: list[Finding]) -> tuple[dict[Path, SourceFile], dict[Path, str]]:
        """Fix findings without conflicts; return the texts, and what is wrong with them."""
        texts: dict[Path, SourceFile] = {}
        faults: dict[Path, str] = {}
        by_path: dict[Path, list[Fix]] = defaultdict(list)
        for fix in (finding.fix for finding in findings if finding.fix):
            for path in sorted(fix.paths):
                by_path[path].append(fix)
        for path, fixes in by_path.items():
            source = self._source(path)
            try:
                edits = sorted(joint_edits(path, fixes))
                texts[path] = source.replaced(apply_edits(source.text, edits))
            except ApplyError as error:
                faults[path] = str(error)
                continue
            if reason := check_integrity(source, texts[path].text, edits):
                faults[path] = reason
        return texts, faults

    # -- between rounds

    def _accept(self, made: list[Finding], texts: dict[Path, SourceFile]) -> None:
        for finding in made:
            alone = self._apply_alone(finding).items()
            changed = {path: (self._source(path), new) for path, new in alone}
            self.applied.append(Applied(finding, changed))
        for path in texts:
            self.before.setdefault(path, self._source(path))
        self.texts |= texts
        if made:
            self.analysis = self.analyse(dict(self.texts))


def _edits(finding: Finding) -> list[Edit]:
    return sorted(set(finding.fix.edits)) if finding.fix else []


def _paths(finding: Finding) -> frozenset[Path]:
    return finding.fix.paths if finding.fix else frozenset()


def _conflicts(edit: Edit, taken: list[Edit]) -> bool:
    """Return whether an edit overlaps a different one of the sorted `taken`."""
    index = bisect.bisect_left(taken, edit)
    neighbors = taken[max(0, index - 1) : index + 1]
    return edit not in neighbors and any(edit.span.overlaps(other.span) for other in neighbors)
