"""The table of sites, as `remat-migrate report` prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..content import Report, Risk, SiteRow
from .display import Screen, display_width, pluralize, printable
from .summary import not_shown
from .verdicts import verdict_lines
from .weights import operations, size

if TYPE_CHECKING:
    from ...measure.worker.records import SiteMeasurement

_COLUMNS = ("place", "api", "form", "target", "options", "risk", "codes")
# Where a target was measured: peak memory, operations, and what that makes of the checkpoint.
_MEASURED = ("saves", "costs", "verdict")
_WIDEST = 48
_STYLES: dict[Risk, str] = {"high": "red", "medium": "yellow", "low": "cyan"}


def render(report: Report, screen: Screen) -> Iterator[str]:
    """The lines of the table; its last says how many sites there are."""
    rows = report.sites or ()
    if not rows:
        yield f"No checkpoint in {pluralize(report.files, 'file')}."
        return
    measured = report.weighed is not None and bool(report.weighed.found)
    columns = (*_COLUMNS, *_MEASURED) if measured else _COLUMNS
    lines = [(row, texts) for row in rows for texts in _lines(row, measured, screen)]
    cells = [columns, *(texts for _, texts in lines)]
    widths = [max(display_width(line[i]) for line in cells) for i in range(len(columns))]
    yield screen.paint(_line(columns, widths), "bold")
    for row, texts in lines:
        style = _STYLES.get(row.risk)
        line = _line(texts, widths)
        yield screen.paint(line, style) if style else line
    files = pluralize(len({row.site.module.source.path for row in rows}), "file")
    at_risk = sum(row.risk != "none" for row in rows)
    yield ""
    yield f"{pluralize(len(rows), 'site')} in {files}, {at_risk} with findings.{not_shown(report)}"
    if report.proved is not None:
        yield ""
        yield "Run as it is, and with its fixes:"
        yield from verdict_lines(report, screen)


def _lines(row: SiteRow, measured: bool, screen: Screen) -> Iterator[tuple[str, ...]]:
    """The line of a site, and one for each function if it is applied to several."""
    cells = _cells(row, screen)
    if not measured:
        yield cells
    elif len(row.weights) == 1:
        yield (*cells, *_weight(row.weights[0]))
    else:
        yield (*cells, *("-" for _ in _MEASURED))
        for weight in row.weights:
            blank = [""] * len(cells)
            blank[_COLUMNS.index("target")] = _short(weight.function)
            yield (*blank, *_weight(weight))


def _weight(weight: SiteMeasurement) -> tuple[str, ...]:
    saved, again = weight.peak_bytes_saved, weight.recomputed_flops
    return size(saved), operations(again), weight.verdict.replace("-", " ")


def _cells(row: SiteRow, screen: Screen) -> tuple[str, ...]:
    site = row.site
    at = site.module.source.line_place(site.span.start)
    options = ", ".join(f"{name}={text}" for name, text in site.options.items())
    return (
        f"{screen.path(site.module.source.path)}:{at}",
        site.api,
        site.form,
        _short(site.target or "-"),
        _short(options or "-"),
        row.risk,
        ",".join(row.codes) or "-",
    )


def _short(text: str) -> str:
    text = printable(" ".join(text.split()))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        text + " " * (width - display_width(text))
        for text, width in zip(texts, widths, strict=True)
    )
    return "  ".join(padded).rstrip()
