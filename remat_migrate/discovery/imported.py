"""The files that some files outside any project import, directly or through others."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import SourceError
from ..text.source_file import read_bytes
from .listing import FolderCache

# What follows the word, on its line and in parentheses: also in strings, which costs little.
_IMPORT = re.compile(rb"\b(?:import|from)\b([^()\n;]*(?:\([^()]*\))?)")
_WORD = re.compile(rb"\w+")


def imported_files(root: str, files: Iterable[str], cache: FolderCache) -> set[str]:
    """Return the Python files below `root` that some files import."""
    found: set[str] = set()
    waiting = list(files)
    while waiting:
        path = waiting.pop()
        words = _imported_words(path)
        above = [folder for folder in map(str, Path(path).parents) if _is_below(folder, root)]
        for folder in above if words else ():
            new = {file for file in _named(folder, words, cache) if file not in found}
            found |= new
            waiting += new
    return found


def _imported_words(path: str) -> set[str]:
    try:
        data = read_bytes(Path(path))
    except SourceError:
        return set()  # reported where it is a target
    return {
        word.decode(errors="surrogateescape")
        for names in _IMPORT.findall(data)
        for word in _WORD.findall(names)
    }


def _is_below(folder: str, root: str) -> bool:
    return folder == root or folder.startswith(os.path.join(root, ""))


def _named(folder: str, words: set[str], cache: FolderCache) -> Iterator[str]:
    """Yield the modules and packages in a folder that have one of some names."""
    entries, _ = cache.folder(folder)
    for name, path, is_folder in entries:
        stem, suffix = os.path.splitext(name)
        if is_folder and name in words:
            yield from _named(path, {*words, "__init__"}, cache)
        elif not is_folder and suffix == ".py" and stem in words:
            yield path
