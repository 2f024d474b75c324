"""Jupyter notebooks: the code cells as a Python module, and edits of it as edits of the JSON.

In the view each cell has a line that announces it, its own lines, and an extra line break. A cell
without text has the announcement only.
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from .edits import Edit, Replacement, apply_edits, apply_replacements
from .escapes import (
    BrokenEscape,
    cell_start,
    escaped,
    free_mark,
    is_cell_start,
    lines_of,
    number_of,
    original,
    original_column,
)
from .json_strings import Strings, changes, offset_in, read_json, strings_in
from .magics import cell_as_python

# JSON strings may contain null characters and lone surrogates; Python source may not.
_UNSPEAKABLE = re.compile("[\0\ud800-\udfff]")

_PYTHON = re.compile(r"(?:i?python[\d.]*|py)?", re.IGNORECASE)
_OTHER_KERNEL = re.compile(r"(?:ir|julia|bash|javascript|deno|rust|scala|sas|octave|xcpp)\b", re.I)


class NoNotebook(ValueError):
    """A JSON text is not a notebook."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A code cell: its number, counted from 1 over all cells, and its text with its position."""

    number: int
    strings: Strings


@dataclass(frozen=True, eq=False)
class JupyterNotebook:
    """A Jupyter notebook as one Python module.

    Attributes:
        text: the file.
        view: its code cells; lines that are not Python are escaped.
        mark: the character that marks escaped lines.
        cells: the code cells.
    """

    text: str
    view: str
    mark: str
    cells: tuple[_Cell, ...]

    def restore(self, view: str) -> str:
        """Return the text of the file that has this view.

        Raises:
            BrokenEscape: a line that is not Python was changed, or a line was added outside the
                cells.
        """
        if view == self.view:
            return self.text
        return apply_replacements(self.text, self.replacements(view))

    def replacements(self, view: str) -> list[Replacement]:
        """Return the replacements in the JSON text that give it this view, in order.

        Raises:
            BrokenEscape: see `restore`.
        """
        if escaped(self.mark, view) != self._escaped:
            raise BrokenEscape("the edit changes a line of the notebook that is not Python")
        found: list[Replacement] = []
        for cell, old, new in zip(self.cells, self._chunks, self._cut(view), strict=True):
            if old != new:
                if _UNSPEAKABLE.search(cell.strings.text):
                    raise BrokenEscape(f"cell {cell.number} is not analysed")
                found.append(changes(self.text, cell.strings, self._cell_text(new)))
        return sorted(found)

    def replacements_of(self, edits: Sequence[Edit]) -> list[Replacement]:
        """Return the replacements in the JSON text that edits of the view make, in order.

        Looks only at the cells that are edited.

        Raises:
            ApplyError: two edits overlap, or one is outside the view.
            BrokenEscape: see `restore`.
        """
        by_cell: dict[int, list[Edit]] = defaultdict(list)
        starts = [*self._cell_starts, len(self.view)]
        for edit in edits:
            # Text that is inserted between two cells ends the first of them.
            number = bisect.bisect_left(starts, max(edit.start, 1)) - 1
            number += starts[number + 1] == edit.start < edit.end
            if not 0 <= number < len(self.cells) or edit.end > starts[number + 1]:
                return self.replacements(apply_edits(self.view, edits))
            by_cell[number].append(edit)
        found: list[Replacement] = []
        for number, own in by_cell.items():
            start, end = starts[number : number + 2]
            view = self.view[start:end]
            alone = JupyterNotebook(self.text, view, self.mark, (self.cells[number],))
            moved = [Edit(e.path, e.start - start, e.end - start, e.text) for e in own]
            found += alone.replacements(apply_edits(view, moved))
        return sorted(found)

    def as_reread(self, view: str) -> str:
        """Return the view that reading the changed file again gives: an empty cell loses its line
        break.
        """
        parts = []
        for cell, chunk in zip(self.cells, self._cut(view), strict=True):
            parts += [cell_start(self.mark, cell.number), "" if chunk == "\n" else chunk]
        return "".join(parts)

    def cell(self, view: str, offset: int) -> tuple[int, int] | None:
        """Return the number of the cell, counted from 1 over all cells, and the line in it."""
        start = self._announcement(view, offset)
        if start < 0:
            return None
        end = view.index("\n", start) + 1
        line = max(0, len(lines_of(view[end:offset] + "|")) - 1)
        return number_of(view[start : end - 1]), line + 1

    def file_offset(self, view: str, offset: int) -> int:
        """Return the offset in the file of a character of the view, or of a view with the same
        cells.
        """
        start = self._announcement(view, offset)
        if start < 0:
            return 0
        end = view.index("\n", start) + 1
        number = number_of(view[start : end - 1])
        strings = self._strings[number]
        if offset < end:
            return strings.start
        line_start = max(view.rfind("\n", 0, offset), view.rfind("\r", 0, offset), end - 1) + 1
        above = sum(len(original(self.mark, line)) for line in lines_of(view[end:line_start]))
        line = next(iter(lines_of(view[line_start:])), "")
        column = original_column(self.mark, line, offset - line_start)
        return offset_in(self.text, strings, above + column)

    @cached_property
    def _escaped(self) -> list[str]:
        return escaped(self.mark, self.view)

    @cached_property
    def _strings(self) -> dict[int, Strings]:
        """The text of each cell, by its number."""
        return {cell.number: cell.strings for cell in self.cells}

    @cached_property
    def _cell_starts(self) -> list[int]:
        """The offset in the view at which each cell starts."""
        sign = re.escape(cell_start(self.mark, 0)[:3])
        return [found.start() for found in re.finditer(f"(?<![^\\r\\n]){sign}", self.view)]

    @cached_property
    def _chunks(self) -> list[str]:
        return self._cut(self.view)

    def _announcement(self, view: str, offset: int) -> int:
        sign = cell_start(self.mark, 0)[:3]
        if view.startswith(sign, offset):
            return offset
        # The offset may be inside the announcement itself.
        return view.rfind(sign, 0, offset + len(sign) - 1)

    def _cut(self, view: str) -> list[str]:
        """Return the lines of each cell in a view."""
        chunks: list[list[str]] = []
        for line in lines_of(view):
            if is_cell_start(self.mark, line):
                chunks.append([])
            elif chunks:
                chunks[-1].append(line)
            else:
                raise BrokenEscape("the edit puts a line before the first cell")
        return ["".join(chunk) for chunk in chunks]

    def _cell_text(self, chunk: str) -> str:
        if chunk and not chunk.endswith(("\n", "\r")):
            raise BrokenEscape("the edit joins two cells")
        lines = lines_of(chunk[:-1])
        return "".join(original(self.mark, line) for line in lines)


def read_notebook(text: str) -> JupyterNotebook:
    """Read a JSON text as a notebook; one in a language other than Python has no cells.

    Raises:
        json.JSONDecodeError: the text is not JSON.
        NoNotebook: the JSON is not a notebook.
        ValueError: the cells contain every private-use character.
    """
    cells = _code_cells(text)
    written = [cell.strings.text for cell in cells]
    mark = free_mark("".join(written))
    if mark is None:
        raise ValueError("uses every private-use character")
    parts: list[str] = []
    for cell, text_of_cell in zip(cells, written, strict=True):
        code = "" if _UNSPEAKABLE.search(text_of_cell) else cell_as_python(text_of_cell, mark)
        parts += [cell_start(mark, cell.number), code and code + "\n"]
    return JupyterNotebook(text, "".join(parts), mark, tuple(cells))


def _code_cells(text: str) -> list[_Cell]:
    if not text.lstrip().startswith("{"):
        raise NoNotebook("its JSON is not an object")
    try:
        document = read_json(text)
    except RecursionError:
        raise NoNotebook("is nested too deeply") from None
    assert isinstance(document, dict)
    match document:
        case {"cells": [*cells]}:
            pass
        case {"worksheets": [*sheets]}:  # format 3
            cells = []
            for sheet in sheets:
                match sheet:
                    case {"cells": [*own]}:
                        cells += own
        case _:
            raise NoNotebook("its JSON has no cells")
    if not _is_python(document.get("metadata")):
        return []
    found = ((number, _source(cell)) for number, cell in enumerate(cells, 1))
    return [_Cell(number, strings) for number, strings in found if strings is not None]


def _source(cell: object) -> Strings | None:
    """Return the text of a cell; None for one that is not Python code."""
    match cell:
        case {"cell_type": "code", **rest} if rest.get("language", "python") == "python":
            return strings_in(rest.get("source", rest.get("input")))
    return None


def _is_python(metadata: object) -> bool:
    """Return whether a notebook is in Python, judged by its language or else its kernel name."""
    match metadata:
        case {"language_info": {"name": str(language)}} if language:
            return bool(_PYTHON.fullmatch(language))
        case {"kernelspec": {"language": str(language)}} if language:
            return bool(_PYTHON.fullmatch(language))
        case {"kernelspec": {"name": str(kernel)}}:
            return not _OTHER_KERNEL.match(kernel)
    return True
