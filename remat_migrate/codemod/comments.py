"""Writes comments in files of any format, without LibCST: the code does not change."""

from __future__ import annotations

from ..text import Edit, SourceFile
from .changes import SetComment


def comment_edit(change: SetComment) -> Edit:
    """Return the edit that replaces a comment, or removes it and its line if that is empty."""
    source = change.file.source
    start, end = change.comment
    if not change.text:
        start, end = _with_blanks(source, start, end)
    return Edit(source.path, start, end, change.text)


def _with_blanks(source: SourceFile, start: int, end: int) -> tuple[int, int]:
    """Return a comment with the blanks before it, or its whole line if there is nothing else."""
    text = source.text
    line, _ = source.position(start)
    line_start = source.line_starts[line - 1]
    if code := text[line_start:start].rstrip():
        return line_start + len(code), end
    if text[:line_start].rstrip("\r\n").endswith("\\"):
        # A continued line ends here, and must not continue on the next one.
        return start, end
    return line_start, source.line_starts[line] if line < len(source.line_starts) else end
