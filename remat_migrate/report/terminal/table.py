"""The table of sites that `remat-migrate report` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..content import Report, Risk, SiteRow
from .display import Screen, display_width, pluralize, printable, shorten, truncate
from .summary import not_shown
from .verdicts import verdict_lines
from .weights import operations, size

_COLUMNS = ("place", "api", "form", "target", "options", "risk", "codes")
_TARGET = _COLUMNS.index("target")
# Where a target was measured: peak memory, operations, and the verdict.
_MEASURED = ("saves", "costs", "verdict")
_MAX_CELL = 48
# What a narrow terminal leaves out, and what it cuts, in this order; other formats have it all.
_DROPPED = ("form", "options", "api")
_CUT = ("target", "place")
_STYLES: dict[Risk, str] = {"high": "red", "medium": "yellow", "low": "cyan"}


def render(report: Report, screen: Screen) -> Iterator[str]:
    """Yield the lines of the table, and the number of sites."""
    rows = report.sites or ()
    if not rows:
        yield f"No checkpoint in {pluralize(report.files, 'file')}."
        return
    measured = report.weighed is not None and bool(report.weighed.found)
    columns = (*_COLUMNS, *_MEASURED) if measured else _COLUMNS
    lines = [(row, cells) for row in rows for cells in _cells(row, measured, screen)]
    table = [columns, *(cells for _, cells in lines)]
    kept, widths = _fitted(table, screen)
    yield screen.paint(_line([columns[at] for at in kept], widths), "bold")
    for row, cells in lines:
        style = _STYLES.get(row.risk)
        line = _line([cells[at] for at in kept], widths)
        yield screen.paint(line, style) if style else line
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
    options = ", ".join(f"{name}={text}" for name, text in site.options.items())
    cells = (
        f"{screen.path(site.module.source.path)}:{at}",
        site.api,
        site.form,
        _short(site.target or "-"),
        _short(options or "-"),
        row.risk,
        ",".join(row.codes) or "-",
    )
    figures = [
        (
            size(one.peak_bytes_saved),
            operations(one.recomputed_flops),
            one.verdict.replace("-", " "),
        )
        for one in row.weights
    ]
    if not measured:
        yield cells
    elif len(figures) == 1:
        yield (*cells, *figures[0])
    else:
        yield (*cells, *("-" for _ in _MEASURED))
        for weight, own in zip(row.weights, figures, strict=True):
            blank = [""] * len(_COLUMNS)
            blank[_TARGET] = _short(weight.function)
            yield (*blank, *own)


def _fitted(table: Sequence[Sequence[str]], screen: Screen) -> tuple[Sequence[int], Sequence[int]]:
    """Return the columns to show, and their widths; on a terminal, what fits."""
    widths = [max(map(display_width, column)) for column in zip(*table, strict=True)]
    kept = list(range(len(widths)))

    def total() -> int:
        return sum(widths[at] for at in kept) + 2 * (len(kept) - 1)

    for name in _DROPPED if screen.is_terminal else ():
        if total() > screen.width:
            kept.remove(_COLUMNS.index(name))
    for name in _CUT if screen.is_terminal else ():
        at = _COLUMNS.index(name)
        widths[at] = max(len(name), widths[at] - max(0, total() - screen.width))
    return kept, [widths[at] for at in kept]


def _short(text: str) -> str:
    return shorten(printable(" ".join(text.split())), _MAX_CELL)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        (shown := truncate(cell, width)) + " " * (width - display_width(shown))
        for cell, width in zip(cells, widths, strict=True)
    )
    return "  ".join(padded).rstrip()
