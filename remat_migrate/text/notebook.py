"""Jupyter notebooks: the code cells as a Python module, and edits of it as edits of the JSON.

In the view each cell has a line that announces it, its own lines, and an extra line break.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from .edits import Edit, Replacement, apply_edits, apply_replacements
from .escapes import CELL, MARK, BrokenEscape, escaped, lines_of, original
from .json_strings import LocatedString, change, offset_in, read_json
from .magics import cell_as_python

# JSON strings may contain null characters and lone surrogates; Python source may not.
_UNSPEAKABLE = re.compile(f"[\0\ud800-\udfff{MARK}]")
_ANNOUNCEMENT = re.compile(rf"{CELL}[^\r\n]*[\r\n]")

_PYTHON = re.compile(r"(?:i?python[\d.]*|py)?", re.IGNORECASE)
_OTHER_KERNEL = re.compile(r"(?:ir|julia|bash|javascript|deno|rust|scala|sas|octave|xcpp)\b", re.I)


@dataclass(frozen=True, slots=True)
class _Cell:
    """A code cell.

    Attributes:
        number: its number, counted from 1 over all cells.
        parts: its text, as JSON stores it.
        in_lines: whether that is an array of lines.
    """

    number: int
    parts: tuple[LocatedString, ...]
    in_lines: bool

    @property
    def text(self) -> str | None:
        """The whole text; None if it cannot be Python."""
        text = "".join(self.parts)
        return None if _UNSPEAKABLE.search(text) else text

    def changed(self, file: str, chunk: str) -> Replacement:
        """Return the replacement that gives the cell another text, as the view has it."""
        if not chunk.endswith(("\n", "\r")):
            raise BrokenEscape("the edit joins two cells")
        if not self.parts or self.text is None:
            raise BrokenEscape(f"cell {self.number} cannot be edited")
        new = "".join(map(original, lines_of(chunk[:-1])))
        return change(file, self.parts, new, in_lines=self.in_lines)


@dataclass(frozen=True, eq=False)
class JupyterNotebook:
    """A Jupyter notebook as one Python module.

    Attributes:
        text: the file.
        view: its code cells; lines that are not Python are escaped.
        cells: the code cells.
    """

    text: str
    view: str
    cells: tuple[_Cell, ...]

    def restore(self, view: str) -> str:
        """Return the text of the file that has this view.

        Raises:
            BrokenEscape: a line that is not Python was changed, or a line was added outside the
                cells.
        """
        if view == self.view:
            return self.text
        return apply_replacements(self.text, self._replacements(self.cells, self.view, view))

    def replacements(self, edits: Sequence[Edit]) -> list[Replacement]:
        """Return the replacements in the JSON text that sorted edits of the view make, in order.

        Looks only at the cells from the first to the last edit.

        Raises:
            ApplyError: two edits overlap.
            BrokenEscape: see `restore`.
        """
        starts = [*self._starts, len(self.view)]
        # Text that is inserted between two cells ends the first of them.
        first = max(bisect.bisect_left(starts, edits[0].start) - 1, 0)
        last = bisect.bisect_left(starts, max(edit.end for edit in edits), first + 1)
        at = starts[first]
        old = self.view[at : starts[last]]
        moved = [Edit(edit.path, edit.start - at, edit.end - at, edit.text) for edit in edits]
        return self._replacements(self.cells[first:last], old, apply_edits(old, moved))

    def file_offset(self, number: int, index: int) -> int:
        """Return the offset in the file of a character of a cell."""
        return offset_in(self.text, self._by_number[number].parts, index)

    @cached_property
    def _by_number(self) -> dict[int, _Cell]:
        return {cell.number: cell for cell in self.cells}

    @cached_property
    def _starts(self) -> list[int]:
        """The offset in the view at which each cell starts."""
        return [found.start() for found in re.finditer(CELL, self.view)]

    def _replacements(self, cells: Sequence[_Cell], old: str, new: str) -> list[Replacement]:
        """Return the replacements that give cells a new view."""
        if escaped(old) != escaped(new):
            raise BrokenEscape("the edit changes a line of the notebook that is not Python")
        (_, *chunks), (above, *others) = _ANNOUNCEMENT.split(old), _ANNOUNCEMENT.split(new)
        if above:
            raise BrokenEscape("the edit puts a line before the first cell")
        changed = zip(cells, chunks, others, strict=True)
        return [cell.changed(self.text, now) for cell, was, now in changed if was != now]


def read_notebook(text: str) -> JupyterNotebook:
    """Read a JSON text as a notebook; one in a language other than Python has no cells.

    Raises:
        ValueError: the text is not JSON, or not a notebook.
    """
    cells = _code_cells(text)
    view = "".join(f"{CELL}{cell.number}\n{cell_as_python(cell.text or '')}\n" for cell in cells)
    return JupyterNotebook(text, view, tuple(cells))


def _code_cells(text: str) -> list[_Cell]:
    if not text.lstrip().startswith("{"):
        raise ValueError("its JSON is not an object")
    try:
        document = read_json(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    assert isinstance(document, dict)
    if "worksheets" in document or not _is_python(document.get("metadata")):
        return []  # Format 3 is older than JAX.
    cells = document.get("cells")
    if not isinstance(cells, list):
        raise ValueError("its JSON has no cells")
    return [found for number, cell in enumerate(cells, 1) if (found := _code_cell(number, cell))]


def _code_cell(number: int, cell: object) -> _Cell | None:
    """Return a cell of Python code; None for others."""
    match cell:
        case {"cell_type": "code", "source": source}:
            values = source if isinstance(source, list) else [source]
            parts = tuple(value for value in values if isinstance(value, LocatedString))
            if len(parts) == len(values):
                return _Cell(number, parts, isinstance(source, list))
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
