"""Positions as an editor counts them: lines from 0, columns in the units of its encoding."""

from __future__ import annotations

from lsprotocol import types
from pygls.workspace import PositionCodec

from ..text import SourceFile, Span


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


def touches(one: types.Range, other: types.Range) -> bool:
    """Return whether two ranges overlap or meet, as a cursor at the end of a word does."""

    def key(place: types.Position) -> tuple[int, int]:
        return place.line, place.character

    return key(one.start) <= key(other.end) and key(other.start) <= key(one.end)
