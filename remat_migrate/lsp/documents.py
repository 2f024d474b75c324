"""The documents that are open in the editor, as files of a project, and places in them.

An editor counts lines from 0, and columns in the units of its encoding.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lsprotocol import types
from pygls.uris import to_fs_path
from pygls.workspace import PositionCodec

from ..discovery.file_kinds import is_checked_name, is_python
from ..discovery.roots import find_root, is_foreign
from ..errors import SourceError
from ..text import SourceFile, Span, read_source
from ..text.source_file import may_be_notebook

# An editor may send them.
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """An open document.

    Attributes:
        uri: the editor's name for it.
        version: the editor's version; edits name it so that they apply to no other text.
        source: its path and text.
        python: whether it is Python.
        is_settled: whether it was just opened or saved, so that the user is not typing.
    """

    uri: str
    version: int | None
    source: SourceFile
    python: bool
    is_settled: bool

    @property
    def path(self) -> Path:
        """Return the absolute path without symbolic links, an invented one for an unsaved file."""
        return self.source.path

    @property
    def is_readable(self) -> bool:
        """Return whether the text can be parsed, if it is Python."""
        if not self.python:
            return True
        try:
            self.source.parse()
        except SourceError:
            return False
        return True


def document(
    uri: str,
    language: str,
    version: int | None,
    text: str,
    folders: Sequence[Path],
    *,
    is_settled: bool,
) -> Document | None:
    """Return a document that the editor has open, or None if files of its kind are not analysed.

    Args:
        uri: the editor's name for it, of the scheme `file` or `untitled`.
        language: the editor's name for its language.
        version: the editor's version.
        text: its text.
        folders: the folders of the workspace.
        is_settled: whether it was just opened or saved.
    """
    path = path_of(uri, folders, language)
    # Not in an installed package, opened by following a name.
    if path is None or "site-packages" in path.parts or is_foreign(path, find_root([path])):
        return None
    text = _SURROGATE.sub("\ufffd", text)  # no encoding can represent them
    if may_be_notebook(path):
        data = text.encode()
        with suppress(SourceError):
            if is_python(path, data):
                return Document(uri, version, read_source(path, data), True, is_settled)
        return None
    # The editor knows the language of a script without a suffix before it is on disk.
    python = is_python(path) or (language == "python" and not path.suffix)
    if not python and not is_checked_name(path.name):
        return None
    return Document(uri, version, SourceFile(path, text), python, is_settled)


def path_of(uri: str, folders: Sequence[Path], language: str = "") -> Path | None:
    """Return the path of a document, or None if it is not a file but a cell or a git revision.

    An unsaved document counts as a file in the first folder of the workspace, so that its imports
    are found.
    """
    try:
        scheme = urlsplit(uri).scheme
        found = to_fs_path(uri) if scheme == "file" else None
        if found:
            real = Path(os.path.realpath(found))
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                real.lstat()
            return real
    except (ValueError, OSError):
        return None  # There cannot be such a file: it has null bytes, or a name that is too long.
    if scheme != "untitled":
        return None
    name = unquote(uri.partition(":")[2])
    if os.path.isabs(name):  # a file that does not exist yet
        return Path(os.path.realpath(name))
    folder = folders[0] if folders else Path(os.path.realpath(tempfile.gettempdir()))
    base = re.sub(r"\W+", "_", name.rpartition("/")[2]).strip("_") or "untitled"
    return folder / (f"{base}.py" if language == "python" else base)


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
