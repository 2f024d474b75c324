"""What the machine-readable formats share: positions on disk, paths, and encodable text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ...rule import Finding
from ...text import SourceFile, Span
from ..content import remark
from ..terminal.display import display_path, printable
from ..terminal.full import fix_tag

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Region:
    """A range in a file on disk: lines and columns from 1, end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


def on_disk(source: SourceFile, span: Span) -> tuple[SourceFile, Span]:
    """Return the file that other programs open, and where the span is in it."""
    if source.container is None:
        return source, span
    return source.on_disk, Span(source.file_offset(span.start), source.file_offset(span.end))


def region(file: SourceFile, span: Span, width: Callable[[str], int] = len) -> Region:
    """Return the lines and columns of a span of a file on disk.

    Args:
        file: the file.
        span: the span.
        width: how many columns a text takes.
    """
    ends = []
    for offset in span:
        line, column = file.position(offset)
        ends += [line, width(file.text[offset - column + 1 : offset]) + 1]
    return Region(*ends)


def cell(source: SourceFile, offset: int) -> dict[str, object]:
    """Return the notebook cell of an offset; empty for other files."""
    found = source.cell(offset)
    return {"cell": {"number": found[0], "line": found[1]}} if found else {}


def portable_path(path: Path, folder: Path) -> str:
    """Return a path relative to `folder` if it lies below it, as encodable text."""
    return encodable(display_path(path, folder))


def file_uri(path: Path) -> str:
    """Return a path as an RFC 3986 reference: relative, or absolute with `file://`."""
    # Python represents bytes of a name that are not UTF-8 as lone surrogates.
    data = b"".join(map(_encode_char, path.as_posix()))
    if not path.is_absolute():
        return quote(data, safe="/")
    return f"file://{'' if data.startswith(b'/') else '/'}{quote(data, safe='/:')}"


def place(finding: Finding, folder: Path) -> str:
    """Return `src/model.py:14:26`."""
    at = region(*on_disk(finding.source, finding.span))
    return f"{printable(display_path(finding.path, folder))}:{at.line}:{at.column}"


def fix_lines(finding: Finding) -> list[str]:
    """Return what the fix of a finding does and what else there is to know, as lines of text."""
    texts = [remark(finding)]
    if finding.fix is not None:
        texts.insert(0, f"{fix_tag(finding).capitalize()}: {finding.fix.title}")
    return [printable(line) for text in texts for line in text.splitlines()]


def encodable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode and JSON readers reject."""
    return _SURROGATE.sub("\ufffd", text)


def _encode_char(char: str) -> bytes:
    if "\udc80" <= char <= "\udcff":
        return bytes([ord(char) - 0xDC00])
    return char.encode("utf-8", "replace")
