"""Line boundaries in a text."""

from __future__ import annotations

from collections.abc import Iterator


def line_start(text: str, at: int) -> int:
    """Return where the line at an offset starts."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Return where the line at an offset ends, without its line ending."""
    found = text.find("\n", at)
    end = len(text) if found < 0 else found
    return end - 1 if end > at and text[end - 1] == "\r" else end


def next_line(text: str, at: int) -> int:
    """Return where the line after that at an offset starts, or the end of the text."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def logical_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of logical lines, which backslashes continue, without line endings."""
    at = 0
    while at < len(text):
        start, end = at, line_end(text, at)
        at = next_line(text, at)
        while text[start:end].endswith("\\") and at < len(text):
            end = line_end(text, at)
            at = next_line(text, at)
        yield start, end
