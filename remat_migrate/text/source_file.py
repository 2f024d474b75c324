"""A file's text with its encoding and positions.

Offsets count characters of the decoded text from 0. `ast` counts columns in UTF-8 bytes. Only
`\\n`, `\\r\\n`, and `\\r` end lines, as in Python's tokenizer (unlike `str.splitlines`, form feeds
do not).
"""

from __future__ import annotations

import ast
import bisect
import codecs
import errno
import io
import os
import re
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SourceError
from .edits import Edit, Replacement, Span
from .escapes import cell_at, lines_of, original, original_column
from .regular_files import MAX_BYTES, read_regular

if TYPE_CHECKING:
    from .notebook import JupyterNotebook

Located = ast.expr | ast.stmt | ast.keyword | ast.arg | ast.alias | ast.excepthandler

_NEWLINE = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, eq=False)
class SourceFile:
    """A text file.

    Attributes:
        path: the absolute path.
        text: the decoded content, with its own newlines and without a byte-order mark; for a
            notebook a view, the Python module that its cells make.
        encoding: the codec of the file.
        bom: whether the file starts with a UTF-8 byte-order mark.
        container: converts the view of a notebook back; None for other files.
    """

    path: Path
    text: str = field(repr=False)
    encoding: str = "utf-8"
    bom: bool = False
    container: JupyterNotebook | None = None

    @cached_property
    def line_starts(self) -> list[int]:
        """The offset at which each line starts."""
        return [0, *(m.end() for m in _NEWLINE.finditer(self.text))]

    @cached_property
    def newline(self) -> str:
        """The line ending of the file's first line, `\\n` if it has none."""
        found = _NEWLINE.search(self.text)
        return found.group() if found else "\n"

    def encode(self, text: str) -> bytes:
        """Encode `text` as this file, including its byte-order mark.

        Raises:
            BrokenEscape: the file is a notebook, and `text` changes lines that are not Python.
        """
        if self.container is not None:
            text = self.container.restore(text)
        data = text.encode(self.encoding)
        return codecs.BOM_UTF8 + data if self.bom else data

    @property
    def data(self) -> bytes:
        """The content of the file in bytes."""
        return self.encode(self.text)

    def replaced(self, text: str) -> SourceFile:
        """Return the same file with another text."""
        return SourceFile(self.path, text, self.encoding, self.bom, self.container)

    @cached_property
    def on_disk(self) -> SourceFile:
        """The file's own text and positions: for a notebook, those of the JSON."""
        if self.container is None:
            return self
        text = self.container.restore(self.text)
        return SourceFile(self.path, text, self.encoding, self.bom)

    @cached_property
    def own_container(self) -> JupyterNotebook | None:
        """The container whose view is this text."""
        container = self.container
        if container is None or container.view == self.text:
            return container
        from .notebook import read_notebook

        return read_notebook(self.on_disk.text)

    def file_edits(self, edits: Iterable[Edit]) -> tuple[Replacement, ...]:
        """Convert edits of this text into replacements in the text of `on_disk`, in order.

        Raises:
            ApplyError: two edits overlap, or one is outside the text.
            BrokenEscape: an edit changes a line of a notebook that is not Python.
        """
        ordered = sorted(set(edits))
        if self.own_container is None or not ordered:
            return tuple(Replacement(edit.start, edit.end, edit.text) for edit in ordered)
        return tuple(self.own_container.replacements(ordered))

    def file_offset(self, offset: int) -> int:
        """Return the offset in the text of `on_disk` of a character."""
        if self.own_container is None:
            return offset
        if (found := cell_at(self.text, offset)) is None:
            return 0
        number, start = found
        line, column = self.position(max(offset, start))
        above = lines_of(self.text[start : self.line_starts[line - 1]])
        index = sum(map(len, map(original, above)))
        index += original_column(self.line_text(line), column - 1)
        return self.own_container.file_offset(number, index)

    def file_position(self, offset: int) -> tuple[int, int]:
        """Return the line and column in the file on disk, both from 1, for tools that open it.

        In a Jupyter notebook, that is a position within a JSON string.
        """
        if self.container is None:
            return self.position(offset)
        return self.on_disk.position(self.file_offset(offset))

    def cell(self, offset: int) -> tuple[int, int] | None:
        """Return the number of the cell, counted from 1 over all cells, and the line in it.

        Return None if lines are numbered over the whole file, as in all but Jupyter notebooks.
        """
        if self.container is None or (found := cell_at(self.text, offset)) is None:
            return None
        number, start = found
        return number, self.position(max(offset, start))[0] - self.position(start)[0] + 1

    def place(self, offset: int) -> str:
        """Return the line and column to show: `14:26`, or `cell 3:2:5` in a Jupyter notebook."""
        line, column = self.position(offset)
        return f"{self.line_place(offset)}:{self.shown_column(line, column - 1) + 1}"

    def line_place(self, offset: int) -> str:
        """Return the line to show, as in `place` without the column."""
        found = self.cell(offset)
        return f"cell {found[0]}:{found[1]}" if found else str(self.position(offset)[0])

    def shown_number(self, line: int) -> int:
        """Return the line number to show: in a Jupyter notebook, the line within the cell."""
        found = None if self.container is None else self.cell(self.line_starts[line - 1])
        return found[1] if found else line

    def shown_line(self, line: int) -> str:
        """Return a line as its author wrote it, without the escapes of a notebook's view."""
        text = self.line_text(line)
        return text if self.container is None else original(text)

    def shown_column(self, line: int, column: int) -> int:
        """Return the column in `shown_line`, from 0, of a column of the view."""
        if self.container is None:
            return column
        return original_column(self.line_text(line), column)

    def line_text(self, line: int) -> str:
        """Return the text of a line counted from 1, without its ending; "" past the last line."""
        if not 1 <= line <= len(self.line_starts):
            return ""
        return self.text[self.line_starts[line - 1] : self._end(line)].rstrip("\r\n")

    def _end(self, line: int) -> int:
        """Return where a line ends, after its line ending."""
        return self.line_starts[line] if line < len(self.line_starts) else len(self.text)

    def offset(self, line: int, utf8_column: int) -> int:
        """Return the character offset of an `ast` position: line from 1, column in bytes."""
        start = self.line_starts[line - 1]
        if self.text.isascii():
            return start + utf8_column
        content = self.text[start : self._end(line)].encode()
        return start + len(content[:utf8_column].decode(errors="ignore"))

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset, both from 1, the column in characters."""
        line = bisect.bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line_start(self, offset: int) -> int:
        """Return where the line at an offset starts."""
        return self.line_starts[self.position(offset)[0] - 1]

    def next_line(self, offset: int) -> int:
        """Return where the line after that at an offset starts, or the end of the text."""
        return self._end(self.position(offset)[0])

    def line_end(self, offset: int) -> int:
        """Return where the line at an offset ends, without its line ending."""
        line, _ = self.position(offset)
        return max(offset, self.line_starts[line - 1] + len(self.line_text(line)))

    def span(self, node: Located) -> Span:
        """Return the range of a node of this file's tree, without the decorators of a `def` or
        class.
        """
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return Span(
            self.offset(node.lineno, node.col_offset),
            self.offset(node.end_lineno, node.end_col_offset),
        )

    def full_span(self, node: Located) -> Span:
        """Return the range of a node, starting at the `@` of its first decorator."""
        start, end = self.span(node)
        if decorators := getattr(node, "decorator_list", None):
            start = self.text.rindex("@", 0, self.span(decorators[0]).start)
        return Span(start, end)

    def segment(self, node: Located) -> str:
        """Return the source of a node of this file's tree."""
        start, end = self.span(node)
        return self.text[start:end]

    def parse(self) -> ast.Module:
        """Parse the file as Python.

        Raises:
            SourceError: this Python version cannot parse it.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.text)
        except SyntaxError as error:
            version = ".".join(map(str, sys.version_info[:2]))
            raise SourceError(
                self.path,
                f"{error.msg} under Python {version}; if the file needs a newer Python, run"
                " remat-migrate under it",
                max(1, error.lineno or 1),
                max(1, error.offset or 1),
            ) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise SourceError(self.path, f"cannot be parsed: {error}") from error


def first_line(node: Located) -> int:
    """Return the first line of a node, including its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Read a regular file.

    Raises:
        SourceError: the file cannot be read, or has more bytes than `limit`.
    """
    try:
        return read_regular(path, limit)
    except (OSError, ValueError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "there is not enough memory"
        if getattr(error, "errno", 0) == errno.EFBIG:
            reason += ", see max-file-size"
        raise SourceError(path, f"cannot be read: {reason}") from error


def read_source(path: Path, data: bytes | None = None, *, python: bool = True) -> SourceFile:
    """Read and decode a file as UTF-8, or for Python with its coding cookie (PEP 263).

    With `python`, a file with the suffix of a notebook is read as a notebook.

    Raises:
        SourceError: the file cannot be read, is binary, has encoding errors, or is not a notebook.
    """
    if data is None:
        data = read_bytes(path)
    if python and may_be_notebook(path):
        return _read_notebook(path, read_source(path, data, python=False))
    bom = data.startswith(codecs.BOM_UTF8)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(path, "is UTF-16; Python reads UTF-8: convert the file to UTF-8")
    if b"\0" in data:
        raise SourceError(path, "is binary (it contains null bytes), not text")
    encoding = _declared_encoding(path, data, bom) if python else "utf-8"
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return SourceFile(path, data.decode(encoding), encoding, bom)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(
            path,
            f"is not valid {error.encoding}: byte 0x{data[error.start]:02x} at offset"
            f" {error.start}; save it as UTF-8 or declare its encoding",
            line,
        ) from error
    except (UnicodeError, LookupError) as error:  # punycode and idna; `hex` and its like
        raise SourceError(path, f"is not valid {encoding}: {error}") from error


def check_text(path: Path, data: bytes) -> None:
    """Check that a file is text: a file that cannot matter is still reported if it is not.

    Raises:
        SourceError: the file is not text.
    """
    if not may_be_notebook(path) and (not data.isascii() or b"\0" in data):
        read_source(path, data)


def may_be_notebook(path: Path) -> bool:
    """Return whether a file name has the suffix of a notebook."""
    # Quick, because it is asked for each file of a run.
    return os.fspath(path)[-6:].lower() == ".ipynb" and path.suffix.lower() == ".ipynb"


def _read_notebook(path: Path, raw: SourceFile) -> SourceFile:
    import json

    from .notebook import read_notebook

    try:
        container = read_notebook(raw.text)
    except json.JSONDecodeError as error:
        raise SourceError(
            path, f"is not a notebook: invalid JSON: {error.msg}", error.lineno, error.colno
        ) from error
    except ValueError as error:
        raise SourceError(path, f"is not a readable notebook: {error}") from error
    return SourceFile(path, container.view, raw.encoding, raw.bom, container)


def _declared_encoding(path: Path, data: bytes, bom: bool) -> str:
    if b"coding" not in data[:400]:  # as in most files; the first two lines count
        return "utf-8"
    import tokenize

    try:
        found, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        reason = "has a UTF-8 byte-order mark but declares another encoding" if bom else error.msg
        raise SourceError(path, str(reason)) from error
    return "utf-8" if bom else codecs.lookup(found).name
