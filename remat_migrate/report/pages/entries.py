"""The contents of a report page, whatever its markup: entries for checkpoints and findings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...engine.fingerprint import fingerprints
from ...rule import Finding
from ...text import SourceFile
from ..content import Report, Risk, SiteRow, risk_of
from ..terminal.display import Screen, display_path
from ..terminal.full import fix_tag, split_related
from ..terminal.snippet import Mark
from .code import Block, CodeLine, FileDiff, Piece, blocks, code_lines, differences, prose
from .evidence import TONES, Evidence, VerdictEntry, WeightEntry, verdict_entries

RISKS: Sequence[Risk] = ("high", "medium", "low", "none")
# Beyond this many related places only their positions and messages are shown.
_MAX_RELATED_CODE = 12


@dataclass(frozen=True, slots=True)
class Place:
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


@dataclass(frozen=True, slots=True)
class RelatedEntry:
    """A place that explains a finding, with its code."""

    place: Place
    message: tuple[Piece, ...]
    code: tuple[CodeLine, ...]


@dataclass(frozen=True, slots=True)
class FindingEntry:
    """A finding as a page shows it.

    Attributes:
        id: unique in a page and stable when lines move.
        finding: the finding.
        place: where it is.
        lines: its code.
        changes: the diff of each file that its fix edits.
        related: the places that its own code does not show.
        verdicts: those on the units that its fix edits.
    """

    id: str
    finding: Finding
    place: Place
    lines: tuple[CodeLine, ...]
    changes: tuple[FileDiff, ...]
    related: tuple[RelatedEntry, ...]
    verdicts: tuple[VerdictEntry, ...]

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
        fix, reason = self.finding.fix, self.finding.reason
        return blocks("" if fix and fix.title == reason else reason)


@dataclass(frozen=True, slots=True)
class SiteEntry:
    """A checkpoint as a page shows it.

    Attributes:
        id: unique in a page.
        row: its row in the table of sites.
        place: where it is.
        lines: its code.
        findings: the findings that are shown with it.
        elsewhere: its findings that are shown with an earlier site.
        weights: what it saves and costs in the measured targets.
        verdicts: those on the unit that contains it.
    """

    id: str
    row: SiteRow
    place: Place
    lines: tuple[CodeLine, ...]
    findings: tuple[FindingEntry, ...]
    elsewhere: tuple[FindingEntry, ...]
    weights: tuple[WeightEntry, ...]
    verdicts: tuple[VerdictEntry, ...]

    @property
    def risk(self) -> Risk:
        """Return the risk of its worst finding."""
        return self.row.risk

    @property
    def worst_verdict(self) -> VerdictEntry | None:
        """Return the worst verdict on it and on its fixes."""
        findings = (*self.findings, *self.elsewhere)
        found = [*self.verdicts, *(one for finding in findings for one in finding.verdicts)]
        return min(found, key=lambda one: TONES.index(one.tone), default=None)

    @property
    def own_verdicts(self) -> tuple[VerdictEntry, ...]:
        """Return the verdicts that none of its findings shows."""
        shown = {one for finding in self.findings for one in finding.verdicts}
        return tuple(one for one in self.verdicts if one not in shown)

    @property
    def source_line(self) -> str:
        """Return the line that it is on."""
        marked = (line.text.strip() for line in self.lines if line.is_marked)
        return next(marked, "")


@dataclass(frozen=True, slots=True)
class Page:
    """A report as a page shows it.

    Attributes:
        report: the report.
        sites: the checkpoints, the worst first; None where they were not asked for.
        loose: the findings that belong to no site, the worst first.
        verdicts: all verdicts, the worst first.
    """

    report: Report
    sites: tuple[SiteEntry, ...] | None
    loose: tuple[FindingEntry, ...]
    verdicts: tuple[VerdictEntry, ...]

    @property
    def project(self) -> str:
        """Return the name of the project's folder."""
        return self.report.root.name or "/"

    @property
    def risks(self) -> list[tuple[Risk, int]]:
        """Return how many checkpoints, or else findings, have each risk, the worst first."""
        rows = self.report.sites
        risks = map(risk_of, self.report.findings) if rows is None else (row.risk for row in rows)
        counts = Counter(risks)
        return [(risk, counts[risk]) for risk in RISKS]

    @property
    def codes(self) -> list[tuple[str, str, int]]:
        """Return code, name and number of each rule's findings, the most first."""
        counts = Counter((finding.code, finding.name) for finding in self.report.findings)
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return [(code, name, count) for (code, name), count in ordered]

    @property
    def fixed(self) -> int | None:
        """Return how many findings were fixed; None where no fixing was asked for."""
        return None if self.report.fixed is None else sum(self.report.fixed.values())

    @property
    def outcomes(self) -> list[tuple[str, int]]:
        """Return how many verdicts there are of each outcome."""
        return list(Counter(one.outcome for one in self.verdicts).items())

    @property
    def reverted(self) -> int:
        """Return how many fixes verification reverted."""
        return len(self.report.proved.reverted) if self.report.proved else 0

    @property
    def has_weights(self) -> bool:
        """Return whether any checkpoint was measured."""
        return any(site.weights for site in self.sites or ())


def page_of(report: Report, screen: Screen) -> Page:
    """Return the page of a report with paths relative to the screen's folder."""
    entries = _Entries(report, screen)
    sites = None if report.sites is None else entries.sites(report.sites)
    loose = sorted(entries.loose(), key=lambda entry: RISKS.index(entry.risk))
    return Page(report, sites, tuple(loose), verdict_entries(report, screen))


class _Entries:
    """Makes the entries of a page, each finding once."""

    def __init__(self, report: Report, screen: Screen) -> None:
        self._report = report
        self._screen = screen
        self._evidence = Evidence(report, screen)
        self._fingerprints: Mapping[Finding, str] = fingerprints(report.findings, report.root)
        self._ids: Counter[str] = Counter()
        self._made: dict[Finding, FindingEntry] = {}

    def sites(self, rows: Sequence[SiteRow]) -> tuple[SiteEntry, ...]:
        """Return the checkpoints, the worst first."""
        return tuple(map(self._site, sorted(rows, key=lambda row: RISKS.index(row.risk))))

    def loose(self) -> Iterator[FindingEntry]:
        """Yield the findings that no checkpoint shows."""
        for finding in self._report.findings:
            if finding not in self._made:
                yield self._finding(finding)

    def _site(self, row: SiteRow) -> SiteEntry:
        source, offset = row.site.module.source, row.site.span.start
        place = self._place(source, offset)
        here = [finding for finding in row.findings if finding not in self._made]
        elsewhere = [self._made[f] for f in row.findings if f in self._made]
        # An id that is part of an address as it is.
        slug = re.sub(r"[^\w./:~-]", "-", f"{place.path}:{source.place(offset)}")
        return SiteEntry(
            self._unique(slug),
            row,
            place,
            code_lines(source, [Mark(row.site.span, primary=True)]),
            tuple(map(self._finding, here)),
            tuple(elsewhere),
            self._evidence.weights(row),
            self._evidence.verdicts_at([(source, offset)]),
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
            () if source.is_blank else code_lines(source, marks),
            differences(fix.edits, self._report.sources, self._path) if fix else (),
            tuple(
                RelatedEntry(
                    self._place(related.source, related.span.start),
                    prose(related.message),
                    code_lines(related.source, [Mark(related.span, primary=True)])
                    if number < _MAX_RELATED_CODE
                    else (),
                )
                for number, related in enumerate(far)
            ),
            self._evidence.verdicts_at(places),
        )
        self._made[finding] = entry
        return entry

    def _place(self, source: SourceFile, offset: int) -> Place:
        line, _ = source.position(offset)
        return Place(self._screen.path(source.path), source.line_place(offset), line)

    def _path(self, path: Path) -> str:
        return display_path(path, self._screen.folder)

    def _unique(self, name: str) -> str:
        self._ids[name] += 1
        count = self._ids[name]
        return name if count == 1 else self._unique(f"{name}~{count}")
