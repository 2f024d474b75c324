"""Positions as an editor counts them: lines from 0, columns in the units of its encoding."""

from __future__ import annotations

from lsprotocol import types
from pygls.workspace import PositionCodec

from ..text import SourceFile, Span
from .documents import Document


def position(source: SourceFile, offset: int, codec: PositionCodec) -> types.Position:
    """Return the position of an offset, for a notebook in the file on disk."""
    offset, source = source.file_offset(offset), source.on_disk
    line, column = source.position(offset)
    before = source.text[offset - (column - 1) : offset]
    return types.Position(line - 1, codec.client_num_units(before))


def range_of(source: SourceFile, span: Span, codec: PositionCodec) -> types.Range:
    """Return the range of a span."""
    start, end = span
    return types.Range(position(source, start, codec), position(source, end, codec))


def location(
    document: Document | None, source: SourceFile, span: Span, codec: PositionCodec
) -> types.Location:
    """Return where the editor shows a span of a file, which `document` has open, if any."""
    uri = source.path.as_uri() if document is None else document.uri
    return types.Location(uri, range_of(source, span, codec))


def touches(first: types.Location, second: types.Location) -> bool:
    """Return whether two places overlap or meet, as a cursor at the end of a word does."""
    one, other = first.range, second.range

    def key(place: types.Position) -> tuple[int, int]:
        return place.line, place.character

    return (
        first.uri == second.uri
        and key(one.start) <= key(other.end)
        and key(other.start) <= key(one.end)
    )
