"""The table of sites that `remat-migrate report` prints, the worst first."""

from __future__ import annotations

from collections.abc import Iterator

from ..content import RISKS, Report, Risk, SiteRow
from .display import Screen, aligned, pluralize, printable, shorten, truncate
from .summary import not_shown
from .verdicts import verdict_lines, words
from .weights import operations, size

# The end of a line that is too wide for the terminal is cut.
_COLUMNS = ("risk", "codes", "place", "api", "target")
# Where a target was measured: peak memory, operations, and the verdict.
_MEASURED = ("saves", "costs", "verdict")
_MAX_CELL = 48
_STYLES: dict[Risk, tuple[str, ...]] = {"high": ("red",), "medium": ("yellow",), "low": ("cyan",)}


def render(report: Report, screen: Screen) -> Iterator[str]:
    """Yield the lines of the table, and the number of sites."""
    rows = sorted(report.sites or (), key=lambda row: RISKS.index(row.risk))
    if not rows:
        yield f"No checkpoint in {pluralize(report.files, 'file')}."
        return
    measured = report.weighed is not None and bool(report.weighed.found)
    head = (*_COLUMNS, *_MEASURED) if measured else _COLUMNS
    lines = [(row, cells) for row in rows for cells in _cells(row, measured, screen)]
    table = ["  ".join(cells).rstrip() for cells in aligned([head, *(cells for _, cells in lines)])]
    if screen.is_terminal:
        table = [truncate(line, screen.width) for line in table]
    yield screen.paint(table[0], "bold")
    for (row, _), line in zip(lines, table[1:], strict=True):
        yield screen.paint(line, *_STYLES.get(row.risk, ()))
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
    figures = [
        (w.function, size(w.peak_bytes_saved), operations(w.recomputed_flops), words(w.verdict))
        for w in row.weights
    ]
    for function, *cells in figures or [(site.target or "-", "-", "-", "-")]:
        yield (*lead, _short(function), *(cells if measured else ()))


def _short(text: str) -> str:
    return shorten(printable(" ".join(text.split())), _MAX_CELL)
