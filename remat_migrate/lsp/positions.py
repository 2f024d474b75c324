"""Positions as an editor counts them: lines from 0, columns in the units of its encoding."""

from __future__ import annotations

from lsprotocol import types
from pygls.workspace import PositionCodec

from ..text import SourceFile, Span
from .documents import Cell, Document


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
    """Return where the editor shows a span: in a file, or in a cell of an open notebook.

    Args:
        document: the open document of the file, if it is open.
        source: the file.
        span: a span, within one cell of a notebook.
        codec: converts columns.
    """
    first = source.cell(span.start)
    if document is None or first is None or not first[0] <= len(document.cells):
        uri = source.path.as_uri() if document is None else document.uri
        return types.Location(uri, range_of(source, span, codec))
    cell = document.cells[first[0] - 1]
    start, end = (_cell_position(cell, source, offset, codec) for offset in span)
    return types.Location(cell.uri, types.Range(start, end))


def _cell_position(
    cell: Cell, source: SourceFile, offset: int, codec: PositionCodec
) -> types.Position:
    found = source.cell(offset)
    assert found is not None
    line, column = source.position(offset)
    before = cell.source.line_text(found[1])[: source.shown_column(line, column - 1)]
    return types.Position(found[1] - 1, codec.client_num_units(before))


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
