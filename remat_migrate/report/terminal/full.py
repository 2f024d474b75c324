"""The `full` format: every finding with its code underlined, as a compiler shows it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ...console import is_quiet
from ...rule import Finding, Related
from ..content import Report, remark
from .display import Screen, display_width, printable
from .snippet import Mark, snippet
from .summary import hints, summary

# Related places within so many lines are shown in the code, others by their position.
_MAX_DISTANCE = 40
_MAX_RELATED = 6
_STYLES = {"error": "red", "warning": "yellow", "note": "cyan"}
_TAG_STYLES = {"safe fix": ("green",), "unsafe fix": ("yellow", "bold")}


def render(report: Report, screen: Screen) -> Iterator[str]:
    """Yield the lines of the report."""
    for finding in report.findings:
        yield from render_finding(finding, screen)
        yield ""
    if is_quiet():
        return
    if report.findings:
        yield f"For details of a rule: remat-migrate explain {report.findings[0].code}"
    yield from summary(report, screen)
    if screen.is_terminal:
        yield from hints(report)


def render_finding(finding: Finding, screen: Screen) -> Iterator[str]:
    """Yield the lines of one finding."""
    style = _STYLES[finding.severity]
    yield _header(finding, screen, style)
    near, far = split_related(finding)
    gutter = " "
    if finding.source.text.strip():
        marks = [Mark(finding.span, primary=True)]
        marks += [Mark(related.span, related.message) for related in near]
        shown = snippet(finding.source, marks, screen, style)
        gutter *= shown.gutter
        yield from shown.lines
    arrow = screen.paint(":::", "blue")
    for related in far[:_MAX_RELATED]:
        at = related.source.line_place(related.span.start)
        place = f"{screen.path(related.source.path)}:{at}"
        yield f"{gutter} {arrow} {place}  {printable(related.message)}"
    if len(far) > _MAX_RELATED:
        yield f"{gutter} {arrow} and {len(far) - _MAX_RELATED} more"
    if finding.fix is not None:
        yield from _note("help", finding.fix.title, gutter, screen)
    if text := remark(finding):
        yield from _note("note", text, gutter, screen)


def fix_tag(finding: Finding) -> str:
    """Return `safe fix`, `unsafe fix`, `manual fix`, or nothing without a fix."""
    fix = finding.fix
    if fix is None:
        return ""
    return f"{fix.safety} fix" if fix.is_automatic else "manual fix"


def header_tag(finding: Finding) -> str:
    """Return the fix tag, after `advice` for a finding that does not fail a run by default."""
    tags = (
        "advice" if finding.severity == "note" else "",
        fix_tag(finding),
        "edits other files" if finding.is_withheld else "",
    )
    return ", ".join(filter(None, tags))


def split_related(finding: Finding) -> tuple[list[Related], list[Related]]:
    """Split the related places into those that the finding's own code shows, and the others."""
    near: list[Related] = []
    far: list[Related] = []
    for related in dict.fromkeys(finding.related):
        close = related.source.path == finding.path and _is_close(finding, related)
        (near if close and len(near) < _MAX_RELATED else far).append(related)
    return near, far


def _is_close(finding: Finding, related: Related) -> bool:
    """Return whether two places of a file fit into one piece of code; in notebooks, a cell."""
    source, offsets = finding.source, (finding.span.start, related.span.start)
    one, other = (source.cell(at) or (None, source.position(at)[0]) for at in offsets)
    return one[0] == other[0] and abs(one[1] - other[1]) <= _MAX_DISTANCE


def _header(finding: Finding, screen: Screen, style: str) -> str:
    """Return the place, the code, the message, and how it is fixed."""
    place = f"{screen.place(finding.source, finding.span.start)}:"
    message, tag = printable(finding.message), header_tag(finding)
    line = f"{screen.paint(place, 'bold')} {screen.paint(finding.code, style, 'bold')} {message}"
    if not tag:
        return line
    room = screen.width - display_width(f"{place} {finding.code} {message}{tag}")
    return (
        line + " " * max(2, room) + screen.paint(tag, *_TAG_STYLES.get(fix_tag(finding), ("bold",)))
    )


def _note(title: str, text: str, gutter: str, screen: Screen) -> Iterator[str]:
    head = f"{title}: "
    indent = " " * (len(gutter) + 3 + len(head))
    width = max(40, screen.width - len(indent))
    lines = [part for line in text.splitlines() for part in _wrapped(printable(line), width)]
    first, *rest = lines or [""]
    sign = screen.paint("=", "blue", "bold")
    yield f"{gutter} {sign} {screen.paint(head, 'bold')}{first}"
    yield from (indent + line for line in rest)


def _wrapped(line: str, width: int) -> list[str]:
    # Indented lines are code, which wrapping would spoil.
    if line.startswith(" "):
        return [line]
    return textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
