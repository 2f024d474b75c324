"""Notebooks that the editor shows as cells, each of them a text document of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from lsprotocol import types
from pygls.workspace import PositionCodec

from ..text import SourceFile, read_source
from ..text.source_file import may_be_notebook
from .documents import Cell, Document, path_of, valid_text

_LINE = re.compile("(?<=\n)|(?<=\r)(?!\n)")


class Notebook:
    """The cells of an open notebook.

    Attributes:
        uri: the editor's name for the notebook.
        version: the editor's version of it.
    """

    def __init__(self, params: types.DidOpenNotebookDocumentParams) -> None:
        self.uri = params.notebook_document.uri
        self.version = params.notebook_document.version
        self._cells = list(params.notebook_document.cells)
        self._texts = {one.uri: one for one in params.cell_text_documents}

    def change(
        self, params: types.DidChangeNotebookDocumentParams, codec: PositionCodec
    ) -> Sequence[str]:
        """Apply changes of cells and their texts; return the URIs of the cells that were closed."""
        self.version = params.notebook_document.version
        changes = params.change.cells
        closed: list[str] = []
        if changes is not None and (structure := changes.structure):
            array = structure.array
            self._cells[array.start : array.start + array.delete_count] = array.cells or ()
            self._texts |= {one.uri: one for one in structure.did_open or ()}
            closed = [one.uri for one in structure.did_close or ()]
            for uri in closed:
                self._texts.pop(uri, None)
        for changed in (changes and changes.text_content) or ():
            item = self._texts[changed.document.uri]
            text = item.text
            for one in changed.changes:
                text = _changed(text, one, codec)
            version = changed.document.version
            self._texts[item.uri] = types.TextDocumentItem(
                item.uri, item.language_id, version, text
            )
        return closed

    def document(self, folders: Sequence[Path], *, is_settled: bool) -> Document | None:
        """Return the notebook as a document, or None if it is neither a file nor unsaved.

        Args:
            folders: the folders of the workspace.
            is_settled: whether it was just opened or saved.
        """
        path = path_of(self.uri, folders)
        if path is None:
            return None
        if not may_be_notebook(path):  # it is unsaved
            path = path.with_name(f"{path.name}.ipynb")
        items = [self._texts[cell.document] for cell in self._cells]
        code = types.NotebookCellKind.Code
        content = {
            "cells": [
                {
                    "cell_type": "code" if cell.kind == code else "markdown",
                    "language": str(item.language_id),
                    "source": valid_text(item.text),
                }
                for cell, item in zip(self._cells, items, strict=True)
            ],
            "metadata": {"language_info": {"name": "python"}},
        }
        source = read_source(path, json.dumps(content).encode())
        cells = tuple(
            Cell(one.uri, one.version, SourceFile(path, valid_text(one.text))) for one in items
        )
        return Document(self.uri, self.version, source, True, is_settled, cells)


def cell_texts(source: SourceFile) -> list[str]:
    """Return the texts of all cells of a document that `Notebook.document` returned."""
    return [cell["source"] for cell in json.loads(source.on_disk.text)["cells"]]


def _changed(text: str, change: types.TextDocumentContentChangeEvent, codec: PositionCodec) -> str:
    """Apply a change to the text of a cell."""
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return change.text
    lines = _LINE.split(text)
    start, end = (
        sum(map(len, lines[: place.line])) + place.character
        for place in (
            codec.position_from_client_units(lines, change.range.start),
            codec.position_from_client_units(lines, change.range.end),
        )
    )
    return text[:start] + change.text + text[end:]
