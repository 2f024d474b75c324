"""The contents of a report page, whatever its markup: entries for checkpoints and findings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...engine.fingerprint import fingerprints
from ...rule import Finding
from ...text import SourceFile
from ..content import RISKS, Report, Risk, SiteRow, remark, risk_of, worst_first
from ..terminal.display import Screen, display_path
from ..terminal.full import fix_tag, split_related
from ..terminal.snippet import Mark
from ..terminal.verdicts import worst_verdicts
from .code import Block, Piece, blocks, diff, marked_code, prose

if TYPE_CHECKING:
    from ...measure.measurement import Measurement
    from ...measure.worker.records import SiteMeasurement
    from ...verify.evidence import Verdict

# Beyond this many related places only their positions and messages are shown.
_MAX_RELATED_CODE = 12


class Place(NamedTuple):
    """A place as it is shown.

    Attributes:
        path: the file.
        at: the line; in a notebook `cell 3:2`.
        line: the line in the analysed text, to sort by.
    """

    path: str
    at: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.at}"


class RelatedEntry(NamedTuple):
    """A place that explains a finding, with its code."""

    place: Place
    message: tuple[Piece, ...]
    code: str


@dataclass(frozen=True, slots=True)
class FindingEntry:
    """A finding as a page shows it.

    Attributes:
        id: unique in a page and stable when lines move.
        finding: the finding.
        place: where it is.
        code: its code.
        diff: what its fix changes.
        related: the places that its own code does not show.
        verdicts: those on the units that its fix edits.
    """

    id: str
    finding: Finding
    place: Place
    code: str
    diff: str
    related: tuple[RelatedEntry, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def risk(self) -> Risk:
        """Return the risk that it is."""
        return risk_of(self.finding)

    @property
    def message(self) -> tuple[Piece, ...]:
        """Return what is wrong."""
        return prose(self.finding.message)

    @property
    def tag(self) -> str:
        """Return `safe fix`, `unsafe fix`, `manual fix` or nothing."""
        return fix_tag(self.finding)

    @property
    def title(self) -> tuple[Piece, ...]:
        """Return what its fix does, or what to write by hand."""
        return prose(self.finding.fix.title) if self.finding.fix else ()

    @property
    def note(self) -> tuple[Block, ...]:
        """Return why there is no fix, or more about the problem."""
        return blocks(remark(self.finding))


@dataclass(frozen=True, slots=True)
class SiteEntry:
    """A checkpoint as a page shows it.

    Attributes:
        id: unique in a page.
        row: its row in the table of sites.
        place: where it is.
        code: its code.
        findings: the findings that are shown with it, the worst first.
        elsewhere: its findings that are shown with an earlier site.
        weights: what it saves and costs, with the measured target.
        verdicts: those on its unit and on its fixes, the worst first.
    """

    id: str
    row: SiteRow
    place: Place
    code: str
    findings: tuple[FindingEntry, ...]
    elsewhere: tuple[FindingEntry, ...]
    weights: tuple[tuple[SiteMeasurement, Measurement], ...]
    verdicts: tuple[Verdict, ...]


class Entries:
    """Makes the entries of a page, each finding once."""

    def __init__(self, report: Report, screen: Screen) -> None:
        self._report = report
        self._screen = screen
        self._fingerprints: Mapping[Finding, str] = fingerprints(report.findings, report.root)
        self._ids: Counter[str] = Counter()
        self._made: dict[Finding, FindingEntry] = {}
        self._verdicts: dict[Path, dict[str, Verdict]] = {}
        for verdict in report.verdicts:
            self._verdicts.setdefault(verdict.unit.path, {})[verdict.unit.qualname] = verdict

    def sites(self) -> tuple[SiteEntry, ...]:
        """Return the checkpoints, the worst first."""
        rows = sorted(self._report.sites or (), key=lambda row: RISKS.index(row.risk))
        return tuple(map(self._site, rows))

    def findings(self) -> Iterator[FindingEntry]:
        """Yield the findings that no checkpoint has shown so far, the worst first."""
        for finding in worst_first(self._report.findings):
            if finding not in self._made:
                yield self._finding(finding)

    def _site(self, row: SiteRow) -> SiteEntry:
        source, offset = row.site.module.source, row.site.span.start
        place = self._place(source, offset)
        own = worst_first(row.findings)
        elsewhere = [self._made[finding] for finding in own if finding in self._made]
        here = [self._finding(finding) for finding in own if finding not in self._made]
        verdicts = [*self._verdicts_at([(source, offset)])]
        verdicts += [one for entry in (*here, *elsewhere) for one in entry.verdicts]
        targets = self._report.weighed.found if self._report.weighed else ()
        # An id that is part of an address as it is.
        slug = re.sub(r"[^\w./:~-]", "-", f"{place.path}:{source.place(offset)}")
        return SiteEntry(
            self._unique(slug),
            row,
            place,
            marked_code(source, [Mark(row.site.span, primary=True)]),
            tuple(here),
            tuple(elsewhere),
            tuple(
                (weight, found)
                for weight in row.weights
                for found in targets
                if any(weight is site for site in found.sites)
            ),
            tuple(worst_verdicts(dict.fromkeys(verdicts))),
        )

    def _finding(self, finding: Finding) -> FindingEntry:
        source, fix = finding.source, finding.fix
        near, far = split_related(finding)
        marks = [Mark(finding.span, primary=True)]
        marks += [Mark(related.span, related.message) for related in near]
        places = [(source, finding.span.start)]
        if fix:
            places += [(self._report.sources[edit.path], edit.start) for edit in fix.edits]
        entry = FindingEntry(
            self._unique(self._fingerprints[finding][:16]),
            finding,
            self._place(source, finding.span.start),
            marked_code(source, marks),
            diff(fix.edits, self._report.sources, self._path) if fix else "",
            tuple(
                RelatedEntry(
                    self._place(related.source, related.span.start),
                    prose(related.message),
                    marked_code(related.source, [Mark(related.span, primary=True)])
                    if number < _MAX_RELATED_CODE
                    else "",
                )
                for number, related in enumerate(far)
            ),
            self._verdicts_at(places),
        )
        self._made[finding] = entry
        return entry

    def _verdicts_at(self, places: Sequence[tuple[SourceFile, int]]) -> tuple[Verdict, ...]:
        """Return the verdicts on the units that contain the places, files with an offset each."""
        from ...verify.units.module_diff import unit_at

        found: dict[Verdict, None] = {}
        for source, offset in places:
            if units := self._verdicts.get(source.path):
                name = unit_at(source.text, offset)
                if name in units:
                    found[units[name]] = None
        return tuple(found)

    def _place(self, source: SourceFile, offset: int) -> Place:
        line, _ = source.position(offset)
        return Place(self._screen.path(source.path), source.line_place(offset), line)

    def _path(self, path: Path) -> str:
        return display_path(path, self._screen.folder)

    def _unique(self, name: str) -> str:
        self._ids[name] += 1
        count = self._ids[name]
        return name if count == 1 else self._unique(f"{name}~{count}")
