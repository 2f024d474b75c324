"""The table of sites, as `remat-migrate report` prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .content import Report, Risk, SiteRow
from .display import Screen, counted, neutral, width_of
from .verdicts import verdict_lines

_COLUMNS = ("place", "api", "form", "target", "options", "risk", "codes")
_WIDEST = 48
_STYLES: dict[Risk, str] = {"high": "red", "medium": "yellow", "low": "cyan"}


def render(report: Report, screen: Screen) -> Iterator[str]:
    """The lines of the table; its last says how many sites there are."""
    rows = report.sites or ()
    if not rows:
        yield f"No checkpoint in {counted(report.files, 'file')}."
        return
    cells = [_COLUMNS, *(_cells(row, screen) for row in rows)]
    widths = [max(width_of(line[i]) for line in cells) for i in range(len(_COLUMNS))]
    yield screen.paint(_line(_COLUMNS, widths), "bold")
    for row, texts in zip(rows, cells[1:], strict=True):
        style = _STYLES.get(row.risk)
        line = _line(texts, widths)
        yield screen.paint(line, style) if style else line
    files = counted(len({row.site.module.source.path for row in rows}), "file")
    at_risk = sum(row.risk != "none" for row in rows)
    yield ""
    yield f"{counted(len(rows), 'site')} in {files}, {at_risk} with findings."
    if report.proved is not None:
        yield ""
        yield "Run as it is, and with its fixes:"
        yield from verdict_lines(report, screen)


def _cells(row: SiteRow, screen: Screen) -> tuple[str, ...]:
    site = row.site
    line, _ = site.module.source.position(site.span.start)
    options = ", ".join(f"{name}={text}" for name, text in site.options.items())
    return (
        f"{screen.path(site.module.source.path)}:{line}",
        site.api,
        site.form,
        _short(site.target or "-"),
        _short(options or "-"),
        row.risk,
        ",".join(row.codes) or "-",
    )


def _short(text: str) -> str:
    text = neutral(" ".join(text.split()))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        text + " " * (width - width_of(text)) for text, width in zip(texts, widths, strict=True)
    )
    return "  ".join(padded).rstrip()
