"""Writes comments, in files of any format; without LibCST, as no code changes."""

from __future__ import annotations

from ..source import Edit, SourceFile
from .changes import SetComment


def comment_edit(change: SetComment) -> Edit:
    """The edit that makes one comment another, or removes it, with its line if that is empty."""
    source = change.file.source
    start, end = change.comment
    if not change.text:
        start, end = _with_blanks(source, start, end)
    return Edit(source.path, start, end, change.text)


def _with_blanks(source: SourceFile, start: int, end: int) -> tuple[int, int]:
    """A comment with the blanks in front of it, or its line if there is nothing else."""
    text = source.text
    line, _ = source.position(start)
    line_start = source.line_starts[line - 1]
    if code := text[line_start:start].rstrip():
        return line_start + len(code), end
    if text[:line_start].rstrip("\r\n").endswith("\\"):
        # A line that is continued ends here, and must not go on with the next one.
        return start, end
    return line_start, source.line_starts[line] if line < len(source.line_starts) else end
