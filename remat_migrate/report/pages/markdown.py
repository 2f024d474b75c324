"""The `markdown` format: a comment on a pull request, the worst first, within GitHub's limit.

Written without jinja2, which is an optional dependency: the limit decides piece by piece what fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..content import Report
from ..terminal.display import Screen, pluralize, shorten
from ..terminal.summary import shares
from ..terminal.weights import operations, size
from .code import CodeLine, FileDiff
from .entries import FindingEntry, Page, RelatedEntry, SiteEntry, page_of
from .evidence import VerdictEntry
from .markdown_text import (
    MAX_CODE,
    escape,
    escape_element,
    fenced,
    format_code,
    format_prose,
    format_prose_element,
)

# GitHub's limit of characters in a comment, apparently counted as JavaScript does.
MAX_LENGTH = 65_536
# The rest of the comment is for the findings behind the rows of the table.
_TABLE_SHARE = 0.35
# Reserved for a line that counts what is omitted.
_RESERVE = 300
_MAX_RELATED = 12
_MAX_VERDICTS = 100
_SIGNS = {"high": "🔴", "medium": "🟠", "low": "🔵", "none": "⚪"}
_SEE_REPORT = "see the full report: `remat-migrate report --output-format html`"


def render(report: Report, screen: Screen) -> str:
    """Return the comment, with a count of what does not fit."""
    page = page_of(report, Screen(screen.width, False, screen.folder))
    comment = _Comment(MAX_LENGTH)
    comment.add("\n".join(_head(page)) + "\n")
    _add_table(page, comment)
    sections = [*_measured(page), *_verified(page)]
    omitted = [section for section in sections if not comment.add(section)]
    if omitted:
        comment.add(f"\n{pluralize(len(omitted), 'more section')}; {_SEE_REPORT}.\n")
    _add_findings(page, comment)
    return str(comment)


class _Comment:
    """A text with a limit."""

    def __init__(self, limit: int) -> None:
        self._room = limit
        self._parts: list[str] = []

    def __str__(self) -> str:
        return "".join(self._parts)

    def add(self, text: str, reserve: int = 0) -> bool:
        """Add a text if it fits and leaves room for `reserve`; return whether it was added."""
        length = len(text.encode("utf-16-le", "surrogatepass")) // 2
        if length + reserve > self._room:
            return False
        self._parts.append(text)
        self._room -= length
        return True


def _head(page: Page) -> Iterator[str]:
    report = page.report
    what = "Findings" if page.sites is None else "Checkpoints"
    yield f"## {what} in {escape(page.project)}"
    yield ""
    if page.sites is not None:
        risks = ", ".join(f"{_SIGNS[risk]} {count} {risk}" for risk, count in page.risks)
        yield f"- **{pluralize(len(page.sites), 'checkpoint')}**: {risks}"
    found = f"**{pluralize(len(report.findings), 'finding')}**"
    if report.advice:
        found += f" ({len(report.advice)} of them advice)"
    details = ", ".join(shares(report.findings, unsafe=report.unsafe))
    by_code = ", ".join(f"{count} {code} {name}" for code, name, count in page.codes)
    yield f"- {found}: {details} ({by_code})" if details else f"- {found}"
    if page.fixed is not None:
        yield f"- **{page.fixed} fixed**"
    if report.suppressed:
        yield f"- {len(report.suppressed)} suppressed"
    if report.proved is not None:
        verdicts = ", ".join(f"{n} {name.replace('-', ' ')}" for name, n in page.outcomes)
        reverted = f", {page.reverted} reverted" if page.reverted else ""
        yield f"- verified: {verdicts or 'nothing differs'}{reverted}"
    if report.weighed is not None:
        for one in report.weighed.found:
            bare = f", {size(one.bare.peak_bytes)} without checkpoints" if one.sites else ""
            peak, flops = size(one.cost.peak_bytes), operations(one.cost.flops)
            yield f"- measured {format_code(one.target)}: traced peak {peak}{bare}, {flops}"
        for target, reason in report.weighed.failed.items():
            yield f"- not measured: {format_code(target)}: {escape(reason)}"


@dataclass(frozen=True, slots=True)
class _Column:
    head: str
    cell: Callable[[SiteEntry | FindingEntry], str]


def _add_table(page: Page, comment: _Comment) -> None:
    """Add the checkpoints with findings or figures, then the findings that belong to none."""
    sites = [site for site in page.sites or () if site.risk != "none" or site.weights]
    rows: list[SiteEntry | FindingEntry] = [*sites, *page.loose]
    if not rows:
        return
    columns = list(_columns(page))
    heads = " | ".join(column.head for column in columns)
    comment.add(f"\n| {heads} |\n|{'|'.join(' --- ' for _ in columns)}|\n")
    for number, row in enumerate(rows):
        cells = " | ".join(column.cell(row) for column in columns)
        if not comment.add(f"| {cells} |\n", reserve=int(MAX_LENGTH * (1 - _TABLE_SHARE))):
            comment.add(f"\nand {len(rows) - number} more, {_SEE_REPORT}.\n")
            return


def _columns(page: Page) -> Iterator[_Column]:
    yield _Column("risk", lambda row: f"{_SIGNS[row.risk]} {row.risk}")
    yield _Column("place", lambda row: format_code(str(row.place)))
    yield _Column("what", _what)
    yield _Column("fix", lambda row: _unique(f.tag for f in _findings(row) if f.tag))
    if page.report.proved is not None:
        yield _Column("proof", lambda row: _unique(_outcomes(row)))
    if page.has_weights:
        for head, name in (("saves", "saves"), ("costs", "costs"), ("measured", "verdict")):
            yield _Column(head, lambda row, name=name: _of_weights(row, name))  # type: ignore[misc]


def _what(row: SiteEntry | FindingEntry) -> str:
    findings = _findings(row)
    if not findings:
        assert isinstance(row, SiteEntry)
        site = row.row.site
        return format_code(site.api) + (f" of {format_code(site.target)}" if site.target else "")
    more = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
    return f"{findings[0].finding.code} {format_prose(findings[0].message)}{more}"


def _findings(row: SiteEntry | FindingEntry) -> Sequence[FindingEntry]:
    return (row,) if isinstance(row, FindingEntry) else (*row.findings, *row.elsewhere)


def _outcomes(row: SiteEntry | FindingEntry) -> Iterator[str]:
    own = row.verdicts if isinstance(row, SiteEntry) else ()
    found = [*own, *(one for finding in _findings(row) for one in finding.verdicts)]
    return (one.outcome.replace("-", " ") for one in found)


def _of_weights(row: SiteEntry | FindingEntry, name: str) -> str:
    weights = row.weights if isinstance(row, SiteEntry) else ()
    return "<br>".join(getattr(one, name) for one in weights)


def _unique(texts: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def _add_findings(page: Page, comment: _Comment) -> None:
    """Add each finding with its code and its fix, as long as there is room."""
    findings = [f for site in page.sites or () for f in site.findings]
    findings += page.loose
    if not findings:
        return
    has_room = comment.add("\n### Findings and fixes\n", _RESERVE)
    omitted = 0
    for finding in findings:
        # A finding that does not fit may do so without its diff.
        if not has_room or not (
            comment.add(_details(finding), _RESERVE)
            or comment.add(_details(finding, short=True), _RESERVE)
        ):
            omitted += 1
    if omitted:
        comment.add(f"\nand {omitted} more not shown in full, {_SEE_REPORT}.\n")


def _details(finding: FindingEntry, *, short: bool = False) -> str:
    place = escape_element(str(finding.place))
    message = f"{finding.finding.code} {format_prose_element(finding.message)}"
    parts = [f"{_SIGNS[finding.risk]} <code>{place}</code> {message}</summary>\n"]
    if finding.lines:
        parts.append(fenced(_numbered(finding.lines), "text"))
    for block in finding.note:
        if block.is_code:
            parts.append(fenced(block.pieces[0].text, "python"))
        else:
            parts.append(format_prose(block.pieces) + "\n")
    if finding.related and not short:
        parts.append("\n".join(_related(finding.related)) + "\n")
    if finding.title:
        parts.append(f"**{finding.tag.capitalize()}:** {format_prose(finding.title)}\n")
    if finding.changes and not short:
        parts.append(fenced("\n".join(_diff(finding.changes)), "diff"))
    elif finding.changes:
        parts.append(f"The diff is too long for a comment; {_SEE_REPORT}.\n")
    if finding.verdicts:
        parts.append("\n".join(map(_verdict, finding.verdicts)) + "\n")
    return "\n<details>\n<summary>" + "\n".join([*parts, "</details>\n"])


def _numbered(lines: Sequence[CodeLine]) -> str:
    width = max(len(str(line.number or "")) for line in lines)
    shown = []
    for line in lines:
        if line.number is None:
            shown.append("...")
            continue
        sign = ">" if line.is_marked else " "
        labels = "".join(f"  ← {''.join(piece.text for piece in label)}" for label in line.labels)
        shown.append(
            f"{sign} {line.number:>{width}} | {shorten(line.text, MAX_CODE)}{labels}".rstrip()
        )
    return "\n".join(shown)


def _related(entries: Sequence[RelatedEntry]) -> Iterator[str]:
    for entry in entries[:_MAX_RELATED]:
        yield f"- {format_code(str(entry.place))} {format_prose(entry.message)}"
    if len(entries) > _MAX_RELATED:
        yield f"- and {len(entries) - _MAX_RELATED} more places"


def _diff(changes: Sequence[FileDiff]) -> Iterator[str]:
    for change in changes:
        yield f"--- {change.path}"
        yield f"+++ {change.path}"
        for line in change.lines:
            yield f"{line.sign}{line.text}"


def _verdict(one: VerdictEntry) -> str:
    basis = f" ({escape(one.basis)})" if one.basis else ""
    return f"- **{one.outcome.replace('-', ' ')}** {format_code(one.unit or one.path)}{basis}"


def _measured(page: Page) -> Iterator[str]:
    """Yield the Pareto front of each target as a table; a comment cannot show a chart."""
    for found in page.report.weighed.found if page.report.weighed else ():
        front = [one for one in found.alternatives if one.pareto]
        if not front:
            continue
        least = min(one.flops for one in found.alternatives) or 1
        target = f"<code>{escape_element(found.target)}</code>"
        rows = [
            f"| {size(one.peak_bytes)} | ×{one.flops / least:.3f} | {escape(one.name)} |"
            for one in front
        ]
        yield _folded(
            f"Pareto-optimal placements of {target}",
            "| traced peak | operations | checkpoints |",
            "| ---: | ---: | --- |",
            *rows,
        )


def _verified(page: Page) -> Iterator[str]:
    if page.verdicts:
        lines = [
            f"{_verdict(one)} in {format_code(f'{one.path}:{one.line}')}"
            for one in page.verdicts[:_MAX_VERDICTS]
        ]
        if (rest := len(page.verdicts) - _MAX_VERDICTS) > 0:
            lines.append(f"- and {rest} more")
        yield _folded(pluralize(len(page.verdicts), "verdict"), *lines)


def _folded(summary: str, *lines: str) -> str:
    body = "\n".join(lines)
    return f"\n<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>\n"
