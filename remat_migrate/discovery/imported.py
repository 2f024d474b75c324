"""The files that some files outside any project import, directly or through others."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from ..errors import SourceError
from ..text.source_file import read_bytes
from .listing import FolderCache

# What follows the words, also in strings, which costs little.
_IMPORT = re.compile(rb"import\b([^()\n;]*(?:\([^()]*\))?)")
_FROM = re.compile(rb"from\b([^()\n;]*)")
_WORD = re.compile(rb"\w+")


def imported_files(
    root: str, files: Sequence[str], named: Sequence[str], cache: FolderCache
) -> set[str]:
    """Return the Python files below `root` that some files import.

    Args:
        root: the folder within which imports are followed.
        files: the files.
        named: the paths that the user named. Looks in the folders above them, and in folders that
            are imported from there. All that is in a named folder is among `files`.
        cache: the contents of folders.
    """
    known, found, unread = {*files, *named}, set[str](), [*files]
    words = {b"__init__"}
    # Modules and folders that nothing imports yet, by their names.
    unused: dict[bytes, list[tuple[str, bool]]] = {}
    imported = [(folder, True) for path in named for folder in _folders_above(path, root)]
    while imported or (unread and unused):
        if not imported:
            new = _imported_words(unread.pop()) - words
            words |= new
            imported = [entry for word in new for entry in unused.pop(word, ())]
            continue
        path, is_folder = imported.pop()
        if path in known:
            continue
        known.add(path)
        if not is_folder:
            found.add(path)
            unread.append(path)
            continue
        for name, inner, is_inner_folder in cache.folder(path)[0]:
            if inner not in known and (is_inner_folder or name.endswith(".py")):
                word = os.fsencode(name if is_inner_folder else name[:-3])
                entries = imported if word in words else unused.setdefault(word, [])
                entries.append((inner, is_inner_folder))
    return found


def _imported_words(path: str) -> set[bytes]:
    try:
        data = read_bytes(Path(path))
    except SourceError:
        return set()  # reported where it is a target
    return set(_WORD.findall(b"\n".join(_IMPORT.findall(data) + _FROM.findall(data))))


def _folders_above(path: str, root: str) -> list[str]:
    """Return the folders above a path that are `root` or below it."""
    above = map(str, Path(path).parents)
    return [folder for folder in above if Path(folder).is_relative_to(root)]
