"""The format `full`: every finding with its code underlined, like a good compiler."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ...rule import Finding, Related
from ..content import Report
from .display import Screen, display_width, printable
from .snippet import Mark, snippet
from .summary import summary

# Farther away a related place gets a line with its position, not its code.
_NEARBY = 40
_MOST_RELATED = 6
_STYLES = {"error": "red", "warning": "yellow", "note": "cyan"}


def render(report: Report, screen: Screen) -> Iterator[str]:
    """The lines of the report."""
    for finding in report.findings:
        yield from render_finding(finding, screen)
        yield ""
    yield from summary(report, screen)


def render_finding(finding: Finding, screen: Screen) -> Iterator[str]:
    """The lines of one finding."""
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
    for number, related in enumerate(far):
        if number == _MOST_RELATED:
            yield f"{gutter} {screen.paint(':::', 'blue')} and {len(far) - number} more"
            break
        at = related.source.line_place(related.span.start)
        place = f"{screen.path(related.source.path)}:{at}"
        yield f"{gutter} {screen.paint(':::', 'blue')} {place}  {printable(related.message)}"
    yield from _notes(finding, gutter, screen)


def fix_tag(finding: Finding) -> str:
    """What a finding's header says about its fix."""
    fix = finding.fix
    if fix is None:
        return ""
    return f"{fix.safety} fix" if fix.is_automatic else "manual fix"


def header_tag(finding: Finding) -> str:
    """`fix_tag`, with `advice` before it where the finding is no more than that."""
    tags = ("advice" if finding.severity == "note" else "", fix_tag(finding))
    return ", ".join(filter(None, tags))


def _header(finding: Finding, screen: Screen, style: str) -> str:
    at = finding.source.place(finding.span.start)
    place = f"{screen.path(finding.path)}:{at}:"
    message = printable(finding.message)
    tag = header_tag(finding)
    plain = f"{place} {finding.code} {message}"
    blanks = max(2, screen.width - display_width(plain) - len(tag)) if tag else 0
    painted = screen.paint(finding.code, style, "bold")
    tag_style = "yellow" if tag.endswith("manual fix") else "green"
    return (
        f"{screen.paint(place, 'bold')} {painted} {message}"
        f"{' ' * blanks}{screen.paint(tag, tag_style)}"
    )


def split_related(finding: Finding) -> tuple[list[Related], list[Related]]:
    """Related places near enough to be shown in the code, and the others."""
    near: list[Related] = []
    far: list[Related] = []
    for related in dict.fromkeys(finding.related):
        close = related.source.path == finding.path and _is_close(finding, related)
        (near if close and len(near) < _MOST_RELATED else far).append(related)
    return near, far


def _is_close(finding: Finding, related: Related) -> bool:
    """Whether two places of a file are shown in one piece of it: within a cell, in a notebook."""
    source, places = finding.source, (finding.span.start, related.span.start)
    one, other = (source.cell(at) or (None, source.position(at)[0]) for at in places)
    return one[0] == other[0] and abs(one[1] - other[1]) <= _NEARBY


def _notes(finding: Finding, gutter: str, screen: Screen) -> Iterator[str]:
    notes = []
    if finding.fix is not None:
        notes.append(("fix", finding.fix.title))
    if finding.reason and not (finding.fix and finding.fix.title == finding.reason):
        notes.append(("note", finding.reason))
    notes.append(("why", f"remat-migrate explain {finding.code}"))
    sign = screen.paint("=", "blue", "bold")
    for title, text in notes:
        head = f"{title}: "
        indent = " " * (len(gutter) + 3 + len(head))
        width = max(40, screen.width - len(indent))
        first, *rest = [
            piece for line in text.splitlines() for piece in _wrapped(printable(line), width)
        ] or [""]
        yield f"{gutter} {sign} {screen.paint(head, 'bold')}{first}"
        yield from (indent + line for line in rest)


def _wrapped(line: str, width: int) -> list[str]:
    # Code in a note is worth more than the width: only prose is wrapped, never within a word.
    if line.startswith(" "):
        return [line]
    return textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
