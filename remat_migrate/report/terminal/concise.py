"""The `concise` format: one line per finding, for editors and `grep`."""

from __future__ import annotations

from collections.abc import Iterator

from ...console import is_quiet
from ..content import Report
from .display import Screen, printable
from .full import header_tag
from .summary import summary


def render(report: Report, screen: Screen) -> Iterator[str]:
    """Yield the lines of the report."""
    for finding in report.findings:
        at = screen.place(finding.source, finding.span.start)
        place = screen.paint(f"{at}:", "bold")
        tag = f" [{tag}]" if (tag := header_tag(finding)) else ""
        code = screen.paint(finding.code, "red", "bold")
        yield f"{place} {code} {printable(finding.message)}{tag}"
    if not is_quiet():
        yield from summary(report, screen)
