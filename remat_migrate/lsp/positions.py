"""Where characters stand as an editor counts: lines from 0, columns in units of an encoding."""

from __future__ import annotations

from lsprotocol import types

from ..text import SourceFile, Span

Encoding = types.PositionEncodingKind | str

UTF_8, UTF_16 = types.PositionEncodingKind.Utf8, types.PositionEncodingKind.Utf16


def units(text: str, encoding: Encoding) -> int:
    """How many code units a text has; halves of surrogate pairs count as the editor counts them."""
    if encoding == UTF_8:
        return len(text.encode("utf-8", "surrogatepass"))
    if encoding == UTF_16:
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    return len(text)


def position(source: SourceFile, offset: int, encoding: Encoding) -> types.Position:
    """The position of a character offset; of a notebook's view, where it stands in the file."""
    offset, source = source.file_offset(offset), source.on_disk
    line, column = source.position(offset)
    before = source.text[offset - (column - 1) : offset]
    return types.Position(line - 1, units(before, encoding))


def range_of(source: SourceFile, span: Span, encoding: Encoding) -> types.Range:
    """The range of a span."""
    start, end = span
    return types.Range(position(source, start, encoding), position(source, end, encoding))


def touches(range_: types.Range, other: types.Range) -> bool:
    """Whether two ranges share a place; a cursor at the end of one does."""

    def key(place: types.Position) -> tuple[int, int]:
        return place.line, place.character

    return key(range_.start) <= key(other.end) and key(other.start) <= key(range_.end)
