"""The table of sites that `remat-migrate report` prints, the worst first."""

from __future__ import annotations

from collections.abc import Iterator

from ..content import RISKS, Report, Risk, SiteRow
from .display import Screen, display_width, pluralize, printable, shorten, truncate
from .summary import not_shown
from .verdicts import verdict_lines, words
from .weights import operations, size

# The end of a line that is too wide for the terminal is cut.
_COLUMNS = ("risk", "codes", "place", "api", "target")
# Where a target was measured: peak memory, operations, and the verdict.
_MEASURED = ("saves", "costs", "verdict")
_MAX_CELL = 48
_STYLES: dict[Risk, str] = {"high": "red", "medium": "yellow", "low": "cyan"}


def render(report: Report, screen: Screen) -> Iterator[str]:
    """Yield the lines of the table, and the number of sites."""
    rows = sorted(report.sites or (), key=lambda row: RISKS.index(row.risk))
    if not rows:
        yield f"No checkpoint in {pluralize(report.files, 'file')}."
        return
    measured = report.weighed is not None and bool(report.weighed.found)
    head = (*_COLUMNS, *_MEASURED) if measured else _COLUMNS
    lines = [(row, cells) for row in rows for cells in _cells(row, measured, screen)]
    table = [head, *(cells for _, cells in lines)]
    widths = [max(map(display_width, column)) for column in zip(*table, strict=True)]

    def line(cells: tuple[str, ...]) -> str:
        padded = (
            cell + " " * (width - display_width(cell))
            for cell, width in zip(cells, widths, strict=True)
        )
        whole = "  ".join(padded).rstrip()
        return truncate(whole, screen.width) if screen.is_terminal else whole

    yield screen.paint(line(head), "bold")
    for row, cells in lines:
        style = _STYLES.get(row.risk)
        yield screen.paint(line(cells), style) if style else line(cells)
    files = pluralize(len({row.site.module.source.path for row in rows}), "file")
    at_risk = sum(row.risk != "none" for row in rows)
    yield ""
    yield f"{pluralize(len(rows), 'site')} in {files}, {at_risk} with findings.{not_shown(report)}"
    if report.proved is not None:
        yield ""
        yield "Current code and fixed code, both run:"
        yield from verdict_lines(report, screen)


def _cells(row: SiteRow, measured: bool, screen: Screen) -> Iterator[tuple[str, ...]]:
    """Yield the line of a site, and one for each function if it is applied to several."""
    site = row.site
    at = site.module.source.line_place(site.span.start)
    place = f"{screen.path(site.module.source.path)}:{at}"
    lead = (row.risk, ",".join(row.codes) or "-", place, site.api)
    target = site.target or "-"
    if not measured:
        yield (*lead, _short(target))
    elif not row.weights:
        yield (*lead, _short(target), *("-" for _ in _MEASURED))
    for one in row.weights if measured else ():
        saves, costs = size(one.peak_bytes_saved), operations(one.recomputed_flops)
        yield (*lead, _short(one.function), saves, costs, words(one.verdict))


def _short(text: str) -> str:
    return shorten(printable(" ".join(text.split())), _MAX_CELL)
