"""Source code with underlined places and labels, as a compiler shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...text import SourceFile, Span
from .display import Screen, display_width, expand_tabs, printable, truncate

# The middle of a place that spans more lines is omitted.
_MAX_LINES = 8
# Gaps of up to this many lines between shown lines are filled.
_MAX_GAP = 2
_MIN_WIDTH = 40


@dataclass(frozen=True, slots=True)
class Mark:
    """A span to underline, and its label."""

    span: Span
    label: str = ""
    primary: bool = False


@dataclass(frozen=True, slots=True)
class Underline:
    """The part of a mark on one line, in characters from 0."""

    start: int
    end: int
    label: str
    primary: bool


@dataclass(frozen=True, slots=True)
class Snippet:
    """The lines of a snippet, and how many columns their numbers take."""

    gutter: int
    lines: tuple[str, ...]


def snippet(source: SourceFile, marks: Sequence[Mark], screen: Screen, style: str) -> Snippet:
    """Return the lines of `source` that `marks` touch, with numbers and underlines.

    A mark of several lines is underlined on each, without the indentation. Lines wider than the
    screen are cropped around their first mark.
    """
    by_line: dict[int, list[Underline]] = {}
    for mark in sorted(marks, key=lambda mark: not mark.primary):
        for line, underline in underlines(source, mark):
            by_line.setdefault(line, []).append(underline)
    gutter = len(str(source.shown_number(max(by_line))))
    return Snippet(gutter, tuple(_drawn(source, by_line, gutter, screen, style)))


def _drawn(
    source: SourceFile,
    by_line: dict[int, list[Underline]],
    gutter: int,
    screen: Screen,
    style: str,
) -> Iterator[str]:
    bar = screen.paint("|", "blue", "bold")
    budget = max(_MIN_WIDTH, screen.width - gutter - 3)
    yield f"{' ' * gutter} {bar}"
    previous = min(by_line) - 1
    for line in sorted(by_line):
        if line - previous > _MAX_GAP + 1:
            yield screen.paint("...", "blue", "bold")
            previous = line - 1
        for between in range(previous + 1, line):
            text, _ = _cropped(source.shown_line(between), [], budget)
            yield _numbered(source.shown_number(between), gutter, text, screen)
        text, drawn = _cropped(source.shown_line(line), by_line[line], budget)
        yield _numbered(source.shown_number(line), gutter, text, screen)
        for blanks, length, underline in drawn:
            sign = ("^" if underline.primary else "-") * length
            colour = (style, "bold") if underline.primary else ("blue",)
            label = f" {printable(underline.label)}" if underline.label else ""
            yield f"{' ' * gutter} {bar} {' ' * blanks}{screen.paint(sign + label, *colour)}"
        previous = line


def _numbered(line: int, gutter: int, text: str, screen: Screen) -> str:
    number = screen.paint(f"{line:>{gutter}} |", "blue", "bold")
    return f"{number} {text}".rstrip()


def underlines(source: SourceFile, mark: Mark) -> Iterator[tuple[int, Underline]]:
    """Yield the lines that a mark touches, each with the part of the mark on it.

    Lines are those of `source`; columns are those of the line as it is shown.
    """
    first, start = source.position(mark.span.start)
    last, end = source.position(max(mark.span.start, mark.span.end))
    if last > first and end == 1:  # the mark ends with a line break
        last, end = last - 1, len(source.line_text(last - 1)) + 1
    lines = list(range(first, last + 1))
    if len(lines) > _MAX_LINES:
        lines = [*lines[: _MAX_LINES - 2], lines[-1]]
    empty = True
    for line in lines:
        text = source.line_text(line)
        left = start - 1 if line == first else len(text) - len(text.lstrip())
        right = end - 1 if line == last else len(text.rstrip())
        if right <= left:
            if len(lines) > 1:
                continue  # a blank line
            right = left + 1
        empty = False
        label = mark.label if line == lines[-1] else ""
        left, right = (source.shown_column(line, column) for column in (left, right))
        yield line, Underline(left, right, label, mark.primary)
    if empty:  # whitespace alone
        left = source.shown_column(first, start - 1)
        yield first, Underline(left, left + 1, mark.label, mark.primary)


def _cropped(
    text: str, underlines: Sequence[Underline], budget: int
) -> tuple[str, list[tuple[int, int, Underline]]]:
    """Crop a line; return it with the columns before each underline and its length.

    A line that does not fit is shown from its start if that shows the first mark, or else from a
    little before that mark.
    """
    text = text.rstrip()
    begin = 0
    if underlines:
        start, end = underlines[0].start, underlines[0].end
        if end >= budget or display_width(text[:end]) >= budget:
            begin = max(0, start - budget // 4)
    lead = "…" if begin else ""
    shown = truncate(lead + printable(text[begin : begin + budget + 1]), budget)
    drawn = []
    for underline in underlines:
        left, right = (
            min(max(at - begin, 0) + len(lead), len(shown))
            for at in (underline.start, underline.end)
        )
        length = max(1, display_width(shown[left:right]))
        drawn.append((display_width(shown[:left]), length, underline))
    return expand_tabs(shown), drawn
