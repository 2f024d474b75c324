"""What a report for reviewers says, whatever its markup: rows of plain data, all computed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ... import __version__
from ...engine.fingerprint import fingerprints
from ...rule import Finding, Safety
from ...text import SourceFile
from ..content import Report, Risk, SiteRow, risk_of
from ..terminal.display import Screen, display_path, printable
from ..terminal.full import fix_tag, split_related
from ..terminal.snippet import Mark
from .code import Block, CodeLine, FileDiff, Piece, blocks, code_lines, differences, prose
from .evidence import Evidence, VerdictEntry, WeightEntry, verdict_entries
from .folders import Folder, folders_of, grouping

if TYPE_CHECKING:
    from ...measure.measurement import Measurement

RISKS: Sequence[Risk] = ("high", "medium", "low", "none")
# The worst first.
TONES = ("bad", "open", "good")
# Related places whose code is shown; of the others the place and what they are.
_MOST_CODE = 12


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands, as it is shown.

    Attributes:
        path: the file.
        at: the line, in a cell of a notebook `cell 3:2`.
        line: the line in the text that was analysed, to sort by.
    """

    path: str
    at: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.at}"


@dataclass(frozen=True, slots=True)
class RelatedEntry:
    """A place that explains a finding; without code where the finding's own code shows it."""

    place: Place
    message: tuple[Piece, ...]
    code: tuple[CodeLine, ...]


@dataclass(frozen=True, slots=True)
class FindingEntry:
    """A finding as a reader is shown it.

    Attributes:
        id: stays when lines move; unique in a page.
        risk: by its severity.
        message: what is wrong.
        tag: "safe fix", "unsafe fix", "by hand" or "".
        title: what the fix does, or what to write by hand.
        changes: what the fix makes of each file.
        note: why there is no fix, or more about the problem.
        verdicts: what running the functions that its fix changes showed.
    """

    id: str
    code: str
    name: str
    risk: Risk
    confidence: str
    place: Place
    message: tuple[Piece, ...]
    tag: str
    title: tuple[Piece, ...]
    changes: tuple[FileDiff, ...]
    note: tuple[Block, ...]
    url: str
    lines: tuple[CodeLine, ...]
    related: tuple[RelatedEntry, ...]
    verdicts: tuple[VerdictEntry, ...]


@dataclass(frozen=True, slots=True)
class SiteEntry:
    """A checkpoint as a reader is shown it.

    Attributes:
        id: unique in a page.
        folder: which of the page's folders it is counted in.
        lines: the code of a site without findings, whose own code shows it.
        findings: those told here.
        elsewhere: those told at another site, for they touch both.
        weights: what it saves and costs in the measured targets.
        verdicts: what running the function that it stands in showed.
    """

    id: str
    place: Place
    folder: str
    api: str
    form: str
    target: str
    context: str
    options: tuple[tuple[str, str], ...]
    risk: Risk
    codes: tuple[str, ...]
    lines: tuple[CodeLine, ...]
    findings: tuple[FindingEntry, ...]
    elsewhere: tuple[FindingEntry, ...]
    weights: tuple[WeightEntry, ...]
    verdicts: tuple[VerdictEntry, ...]

    @property
    def worst_verdict(self) -> VerdictEntry | None:
        """The worst of what running it, and what its fixes change, showed."""
        findings = (*self.findings, *self.elsewhere)
        found = [*self.verdicts, *(one for finding in findings for one in finding.verdicts)]
        return min(found, key=lambda one: TONES.index(one.tone), default=None)

    @property
    def own_verdicts(self) -> tuple[VerdictEntry, ...]:
        """The verdicts that none of its findings tells."""
        told = {one for finding in self.findings for one in finding.verdicts}
        return tuple(one for one in self.verdicts if one not in told)

    @property
    def source_line(self) -> str:
        """The line that it stands at."""
        shown = [line for line in self.lines if line.is_marked]
        return shown[0].text.strip() if shown else ""


@dataclass(frozen=True, slots=True)
class Totals:
    """The numbers at the top.

    Attributes:
        files: how many were looked at.
        sites: how many checkpoints there are; None where they were not asked for.
        risks: how many of each risk, the worst first: sites, or findings where there are no sites.
        findings: how many are left.
        codes: code, name and number of each rule's findings, most first.
        safe, unsafe, by_hand: the findings by what it takes to mend them.
        suppressed: how many were taken away by comments and settings.
        fixed: how many were mended; None where that was not asked for.
        verdicts: how many of each outcome; None where nothing was run.
        reverted: how many fixes were wrong.
    """

    files: int
    sites: int | None
    risks: tuple[tuple[Risk, int], ...]
    findings: int
    codes: tuple[tuple[str, str, int], ...]
    safe: int
    unsafe: int
    by_hand: int
    suppressed: tuple[int, int]
    fixed: int | None
    verdicts: tuple[tuple[str, int], ...] | None
    reverted: int


@dataclass(frozen=True, slots=True)
class Page:
    """All of a report.

    Attributes:
        project: the name of its folder.
        version: of this tool.
        sites: the worst first; None where they were not asked for.
        loose: the findings that belong to no site, the worst first.
        folders: how the sites are spread.
        measured: what was measured, in the order of the settings.
        failed: the targets that could not be, with the reason.
        verdicts: all of them, the worst first.
        notes: what else there is to know of the verification.
    """

    project: str
    version: str
    totals: Totals
    sites: tuple[SiteEntry, ...] | None
    loose: tuple[FindingEntry, ...]
    folders: tuple[Folder, ...]
    measured: tuple[Measurement, ...]
    failed: tuple[tuple[str, str], ...]
    verdicts: tuple[VerdictEntry, ...]
    notes: tuple[str, ...]

    @property
    def has_weights(self) -> bool:
        """Whether any checkpoint was measured."""
        return any(site.weights for site in self.sites or ())


def page_of(report: Report, screen: Screen) -> Page:
    """The page of a report; paths are shown as `screen` has them."""
    made = _Pages(report, screen)
    sites = None if report.sites is None else made.sites(report.sites)
    loose = sorted(made.loose(), key=_worst_first)
    weighed = report.weighed
    return Page(
        printable(report.root.name) or "/",
        __version__,
        _totals(report),
        sites,
        tuple(loose),
        folders_of([(site.folder, site.risk) for site in sites or ()]),
        weighed.found if weighed else (),
        tuple(weighed.failed.items()) if weighed else (),
        verdict_entries(report, screen),
        tuple(printable(note) for note in report.proved.proof.notes) if report.proved else (),
    )


class _Pages:
    """The entries of a page, each finding made once."""

    def __init__(self, report: Report, screen: Screen) -> None:
        self._report = report
        self._screen = screen
        self._evidence: Evidence = Evidence(report, screen)
        self._names: Mapping[Finding, str] = fingerprints(report.findings, report.root)
        self._ids: Counter[str] = Counter()
        self._told: dict[Finding, FindingEntry] = {}

    def sites(self, rows: Sequence[SiteRow]) -> tuple[SiteEntry, ...]:
        """The checkpoints, the worst first."""
        worst = sorted(rows, key=lambda row: RISKS.index(row.risk))
        groups = grouping([self._folder(row) for row in worst])
        return tuple(self._site(row, groups[self._folder(row)]) for row in worst)

    def loose(self) -> Iterator[FindingEntry]:
        """The findings that no checkpoint has told."""
        for finding in self._report.findings:
            if finding not in self._told:
                yield self._finding(finding)

    def _folder(self, row: SiteRow) -> str:
        return self._screen.path(row.site.module.source.path).rpartition("/")[0]

    def _site(self, row: SiteRow, folder: str) -> SiteEntry:
        site = row.site
        source = site.module.source
        place = self._place(source, site.span.start)
        here = [finding for finding in row.findings if finding not in self._told]
        elsewhere = [self._told[f] for f in row.findings if f in self._told]
        return SiteEntry(
            self._unique(_slug(f"{place.path}:{source.place(site.span.start)}")),
            place,
            folder,
            site.api,
            site.form,
            printable(" ".join((site.target or "").split())),
            printable(site.context),
            tuple((name, printable(" ".join(text.split()))) for name, text in site.options.items()),
            row.risk,
            row.codes,
            code_lines(source, [Mark(site.span, primary=True)]),
            tuple(map(self._finding, here)),
            tuple(elsewhere),
            self._evidence.weights(row),
            self._evidence.verdicts_at([(source, site.span.start)]),
        )

    def _finding(self, finding: Finding) -> FindingEntry:
        fix = finding.fix
        near, far = split_related(finding)
        marks = [Mark(finding.span, primary=True)]
        marks += [Mark(related.span, related.message) for related in near]
        places = [(finding.source, finding.span.start)]
        if fix:
            places += [(self._report.sources[edit.path], edit.start) for edit in fix.edits]
        note = finding.reason
        entry = FindingEntry(
            self._unique(self._names[finding][:16]),
            finding.code,
            finding.name,
            risk_of(finding),
            finding.confidence,
            self._place(finding.source, finding.span.start),
            prose(finding.message),
            fix_tag(finding),
            prose(fix.title) if fix else (),
            differences(fix.edits, self._report.sources, self._path) if fix else (),
            blocks("" if fix and fix.title == note else note),
            finding.url,
            code_lines(finding.source, marks) if finding.source.text.strip() else (),
            tuple(
                RelatedEntry(
                    self._place(related.source, related.span.start),
                    prose(related.message),
                    code_lines(related.source, [Mark(related.span, primary=True)])
                    if number < _MOST_CODE
                    else (),
                )
                for number, related in enumerate(far)
            ),
            self._evidence.verdicts_at(places),
        )
        self._told[finding] = entry
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


def _worst_first(entry: FindingEntry) -> int:
    return RISKS.index(entry.risk)


def _slug(path: str) -> str:
    """A path that can stand in an address as it is."""
    return re.sub(r"[^\w./:~-]", "-", path)


def _totals(report: Report) -> Totals:
    counts = Counter(finding.code for finding in report.findings)
    names = {finding.code: finding.name for finding in report.findings}
    codes = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    safe, unsafe = report.count(Safety.SAFE), report.count(Safety.UNSAFE)
    if report.sites is None:
        risks = Counter(map(risk_of, report.findings))
    else:
        risks = Counter(row.risk for row in report.sites)
    by = Counter(hidden.by for hidden in report.hidden)
    proved = report.proved
    verdicts = None
    if proved:
        outcomes = Counter(str(v.outcome) for v in (*proved.proof.verdicts, *proved.wrong))
        verdicts = tuple(outcomes.items())
    return Totals(
        report.files,
        None if report.sites is None else len(report.sites),
        tuple((risk, risks[risk]) for risk in RISKS),
        len(report.findings),
        tuple((code, names[code], count) for code, count in codes),
        safe,
        unsafe,
        len(report.findings) - safe - unsafe,
        (by["comment"], by["settings"]),
        None if report.fixed is None else sum(report.fixed.values()),
        verdicts,
        len(proved.reverted) if proved else 0,
    )
