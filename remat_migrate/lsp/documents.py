"""What is open in the editor: documents as files of a project."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pygls.uris import to_fs_path

from ..discovery.file_kinds import can_matter, is_python
from ..discovery.roots import find_root, is_foreign
from ..errors import SourceError
from ..text import SourceFile, read_source
from ..text.source_file import may_be_notebook

# Half of a pair, which an editor may send and no encoding can hold.
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """An open document.

    Attributes:
        uri: as the editor writes it.
        version: as the editor counts; edits name it, so that none is made to another text.
        source: its path and text.
        python: whether it is Python.
        is_settled: whether it is as it was opened or saved; else somebody is typing.
    """

    uri: str
    version: int | None
    source: SourceFile
    python: bool
    is_settled: bool

    @property
    def path(self) -> Path:
        """The absolute path, without symbolic links; of an unsaved document a made-up one."""
        return self.source.path

    @property
    def is_readable(self) -> bool:
        """Whether the text can be parsed, as far as it must be."""
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
    """A document that the editor has open; None if it is of no kind that is looked at.

    Args:
        uri: names it; the schemes `file` and `untitled` are known.
        language: the editor's name for its language.
        version: as the editor counts.
        text: its text.
        folders: those of the workspace.
        is_settled: whether it was just opened or saved.
    """
    path = path_of(uri, folders, language)
    if path is None or _is_others(path):
        return None
    text = _HALF.sub("\ufffd", text)
    if may_be_notebook(path):
        source = _notebook(path, text)
        return None if source is None else Document(uri, version, source, True, is_settled)
    # An editor knows a script without an ending before its first line is on disk.
    if not (can_matter(path) or (language == "python" and not path.suffix)):
        return None
    python = is_python(path) or language == "python"
    return Document(uri, version, SourceFile(path, text), python, is_settled)


def _notebook(path: Path, text: str) -> SourceFile | None:
    """A notebook that is open as the text of its file; None if it is none, or not at the moment."""
    data = text.encode()
    try:
        return read_source(path, data) if is_python(path, data) else None
    except SourceError:
        return None


def _is_others(path: Path) -> bool:
    """Whether a file is of an installed package, as somebody opens that follows a name."""
    return "site-packages" in path.parts or is_foreign(path, find_root([path]))


def path_of(uri: str, folders: Sequence[Path], language: str = "") -> Path | None:
    """The path that a document stands for, None for what is no file: a cell, a git revision.

    A document that was never saved is seen as a file in the first folder of the workspace, so that
    what it imports from there is found.
    """
    scheme = urlsplit(uri).scheme
    if scheme == "file":
        found = to_fs_path(uri)
        return Path(os.path.realpath(found)) if found else None
    if scheme != "untitled":
        return None
    name = unquote(uri.partition(":")[2])
    if os.path.isabs(name):  # a file that is still to be made
        return Path(os.path.realpath(name))
    folder = folders[0] if folders else Path(os.path.realpath(tempfile.gettempdir()))
    base = re.sub(r"\W+", "_", name.rpartition("/")[2]).strip("_") or "untitled"
    return folder / (f"{base}.py" if language == "python" else base)


def uri_of(path: Path) -> str:
    """The name of a file that is not open."""
    return path.as_uri()
