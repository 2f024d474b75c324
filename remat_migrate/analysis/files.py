"""The Python files of a run: which file a dotted name means, and reading each file once."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from ..discovery.installed import default_search_path
from ..errors import SourceError
from ..prefilter.first_look import FirstLook
from ..prefilter.word_index import WordIndex
from ..prefilter.word_search import Places, WordSearch
from ..prefilter.words import CONCRETE, ESCAPED, SCAN, WORDS
from ..text import SourceFile, read_source
from ..text.regular_files import COARSE_NS, MAX_BYTES
from ..text.source_file import may_be_notebook, read_bytes

# The start of a line of a notebook's code.
_QUOTE = re.compile(rb"(?:^[ \t]*|\"source\":\s*\[?\s*|\",\s*)\"", re.MULTILINE)
# Searches through all files; those after them use an index, which takes as long to make.
_SEARCHES = 10
# Bytes of files that stay in memory: those of most projects, which are searched several times.
_MOST_KEPT = 64 << 20


class Files:
    """The Python files of a run and of the project around it, by path and by dotted name.

    `targets` are the files that the user named, `context` all files of the project. `overlay` holds
    texts that replace files on disk. `search_path` lists folders with installed packages; by
    default, those of the project's environment.

    Attributes:
        beyond: what was looked at besides targets and context, and whether the file exists.
        searches: the searches for words, see `searched`.
        looks: the first looks at files, see `looked_at`.
        used: the files whose content matters otherwise, or to one of these.
        unreadable: files that could not be read.
    """

    def __init__(
        self,
        root: Path,
        targets: Sequence[Path],
        context: Iterable[Path] = (),
        overlay: Mapping[Path, SourceFile] | None = None,
        search_path: Sequence[Path] = (),
        refused: Mapping[Path, SourceError] | None = None,
        limit: Callable[[Path], int] = lambda path: MAX_BYTES,
        previous: Files | None = None,
    ) -> None:
        self.root = root
        self.targets = tuple(dict.fromkeys(targets))
        # In an order that does not depend on which files are named.
        self.all = tuple(dict.fromkeys((*context, *targets)))
        self._search_path = tuple(search_path)
        self._limit = limit
        self._kept: dict[Path, bytes] = {}
        self._room = _MOST_KEPT
        self.beyond: dict[Path, bool] = {}
        self.searches: set[WordSearch] = set()
        self.looks: set[FirstLook] = set()
        self.used: set[Path] = set()
        self.unreadable: set[Path] = set()
        # The states of files that matter to no look, by what the look asks. Most runs analyse only
        # once, so the first analysis takes none.
        self._idle: dict[Path, tuple[object, ...]] = {}
        self._idle_before = previous.idle if previous is not None else None
        self._listed = frozenset(self.all)
        self._overlay = overlay or {}
        self._text: dict[Path, SourceFile | SourceError] = {**(refused or {})}
        self._packages: dict[Path, bool] = {}
        self._dotted: dict[Path, str] = {}
        self._named: dict[tuple[str, Path], Path | None] = {}

    def is_own(self, path: Path) -> bool:
        """Return whether a file belongs to the project, and not to an installed package."""
        return path in self._listed

    def data(self, path: Path) -> bytes:
        """Return the bytes of a file.

        Raises:
            SourceError: the file cannot be read.
        """
        self.used.add(path)
        return self._bytes(path)

    def searched(
        self, path: Path, search: WordSearch, names: Iterable[str] = ()
    ) -> tuple[bytes, Places]:
        """Return the code of a file, see `code`, and which words it contains.

        Without any of them, the content of the file must not matter to the caller, so that the
        cache can tell whether a change of it matters.

        Raises:
            SourceError: the file cannot be read, or is not the notebook that its name promises.
        """
        self.searches.add(search)
        data = self.code(path, names) if may_be_notebook(path) else self._bytes(path)
        places = search.places(data)
        if places:
            self.used.add(path)
        return data, places

    def looked_at(self, path: Path, look: FirstLook) -> tuple[bytes, Places]:
        """As `searched`: without any of the words, the content must not matter to the caller.

        If it matters, the caller adds the file to `used`.

        Raises:
            SourceError: the file cannot be read, or is not the notebook that its name promises.
        """
        self.looks.add(look)
        if self._idle_before is not None and (state := self._state(path)) is not None:
            self._idle[path] = (look.names, look.words, self._limit(path), state)
            if self._idle_before.get(path) == self._idle[path]:
                return b"", {}
        data = self.code(path, look.names) if may_be_notebook(path) else self._bytes(path)
        return data, look.search.places(data)

    @property
    def idle(self) -> dict[Path, tuple[object, ...]]:
        """The files whose content does not matter, with their states."""
        return {path: state for path, state in self._idle.items() if path not in self.used}

    def _state(self, path: Path) -> tuple[int, ...] | None:
        """Return what changes with the content of a file; None if that is not certain."""
        if path in self._overlay:
            return None
        try:
            found = os.stat(path)
        except OSError:
            return None
        if found.st_ctime_ns > time.time_ns() - COARSE_NS:
            return None
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino

    def _bytes(self, path: Path) -> bytes:
        shown = self._overlay.get(path)
        if shown is not None:
            return shown.encode(shown.text)
        if path in self._kept:
            return self._kept[path]
        try:
            data = read_bytes(path, self._limit(path))
        except SourceError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                self._looked_at(path, False)
            else:
                self.unreadable.add(path)
            raise
        self._looked_at(path, True)
        if len(data) <= self._room:
            self._kept[path] = data
            self._room -= len(data)
        return data

    def _looked_at(self, path: Path, there: bool) -> bool:
        if path not in self._listed:
            self.beyond[path] = there
        return there

    def code(self, path: Path, names: Iterable[str]) -> bytes:
        """Return the bytes of a Python file, or of the code of a notebook.

        The output of a notebook's cells cannot make it matter. The code of a notebook without any
        of the words is approximate.

        Args:
            path: the file.
            names: words that may matter, in addition to those that always do.

        Raises:
            SourceError: the file cannot be read, or is not the notebook that its name promises.
        """
        data = self.data(path)
        if not may_be_notebook(path):
            return data
        words = (*WORDS, CONCRETE, *(name.encode() for name in names))
        if not (SCAN in data or any(word in data for word in words) or ESCAPED.search(data)):
            return _QUOTE.sub(b"\n", data.replace(b"\\n", b"\n"))
        return self.read(path, data).text.encode()

    def read(self, path: Path, data: bytes | None = None, *, python: bool = True) -> SourceFile:
        """Return the text of a file, read once per run.

        Raises:
            SourceError: the file cannot be read or decoded.
        """
        found = self._text.get(path)
        if found is None:
            try:
                found = self._overlay.get(path)
                if found is None:
                    data = self.data(path) if data is None else data
                    found = read_source(path, data, python=python)
            except SourceError as error:
                found = error
            self._text[path] = found
        if isinstance(found, SourceError):
            raise found
        return found

    def is_package(self, folder: Path) -> bool:
        """Return whether a folder contains `__init__.py`."""
        known = self._packages.get(folder)
        if known is None:
            init = folder / "__init__.py"
            known = self._packages[folder] = self._looked_at(init, init.is_file())
        return known

    def module_name(self, path: Path) -> str:
        """Return the dotted name of a file, derived from the folders around it with `__init__.py`.

        Folders without it count below the root (namespace packages), up to the root itself or a
        `src` folder.
        """
        if path not in self._dotted:
            self._dotted[path] = self._module_name(path)
        return self._dotted[path]

    def _module_name(self, path: Path) -> str:
        parts = [] if path.name == "__init__.py" else [path.stem]
        folder = path.parent
        while self.is_package(folder) and folder != folder.parent:
            parts.append(folder.name)
            folder = folder.parent
        while self.root in folder.parents and folder.name != "src" and folder.name.isidentifier():
            parts.append(folder.name)
            folder = folder.parent
        return ".".join(reversed(parts)) or path.stem

    @cached_property
    def _by_names(self) -> dict[tuple[str, ...], list[tuple[tuple[str, ...], Path]]]:
        """The modules, with the parts of their paths, by their last name and by their last two."""
        found: dict[tuple[str, ...], list[tuple[tuple[str, ...], Path]]] = {}
        for path in self.all:
            if may_be_notebook(path):
                continue  # nothing can import one
            *folders, name = path.parts
            parts = tuple(folders) if name == "__init__.py" else (*folders, path.stem)
            for key in {parts[-1:], parts[-2:]}:
                found.setdefault(key, []).append((parts, path))
        return found

    def find(self, dotted: str, importer: Path) -> Path | None:
        """Return the file of the project that `import dotted` in `importer` means."""
        key = (dotted, importer.parent)
        if key not in self._named:
            self._named[key] = self._find(dotted, importer)
        return self._named[key]

    def _find(self, dotted: str, importer: Path) -> Path | None:
        parts = tuple(dotted.split("."))
        candidates: list[tuple[int, str, Path]] = []
        for where, path in self._by_names.get(parts[-2:], ()):
            if where[-len(parts) :] != parts:
                continue
            base = Path(*where[: -len(parts)])
            if base == importer.parent:
                rank = 0 if len(parts) == 1 or not self.is_package(base) else 2
            elif self.is_package(base):
                continue
            elif base in importer.parents:
                # The nearest folder around the importing file comes first.
                rank = 10 + len(importer.parts) - len(base.parts)
            elif base == self.root or base.name in ("src", "lib", "python"):
                rank = 100
            elif len(parts) > 1:
                rank = 200
            else:
                continue
            candidates.append((rank, str(path), path))
        if not candidates:
            return None
        candidates.sort()
        if len(candidates) > 1 and candidates[0][0] == candidates[1][0] >= 100:
            return None
        return candidates[0][2]

    @cached_property
    def search_path(self) -> tuple[Path, ...]:
        """The folders with installed packages."""
        return self._search_path or default_search_path(self.root)

    def find_installed(self, dotted: str) -> Path | None:
        """Return the file of an installed module on the search path."""
        relative = Path(*dotted.split("."))
        for folder in self.search_path:
            for path in (folder / relative / "__init__.py", (folder / relative).with_suffix(".py")):
                if self._looked_at(path, path.is_file()):
                    return path
        return None

    def mentioning(self, words: Iterable[str]) -> list[Path]:
        """Return the files of the project whose bytes contain one of `words`, except unreadable
        ones.
        """
        return self._mentions.find(set(words))

    @cached_property
    def _mentions(self) -> _Mentions:
        return _Mentions(self, self.all)


class _Mentions:
    """Searches files for words, and keeps what it finds."""

    def __init__(self, files: Files, paths: Sequence[Path]) -> None:
        self._files = files
        self._paths = paths
        self._found: dict[str, list[int]] = {}
        self._searches = 0
        self._index: WordIndex | None = None

    def find(self, words: set[str]) -> list[Path]:
        """Return the readable files that contain one of some words."""
        if new := sorted(words - self._found.keys()):
            self._found |= self._search(new)
        found: set[int] = set().union(*(self._found[word] for word in words))
        return [self._paths[number] for number in sorted(found)]

    def _search(self, words: Sequence[str]) -> dict[str, list[int]]:
        """Return the numbers of the files that contain each of some words."""
        # A module whose file name is not UTF-8 has surrogates in its name.
        needles = {word: word.encode(errors="surrogateescape") for word in words}
        search = WordSearch(needles.values())
        self._searches += 1
        if self._searches > _SEARCHES:
            if self._index is None:
                self._index = WordIndex(self._each())
            index = self._index
            indexed = {word: index.find(needle) for word, needle in needles.items()}
            if None not in indexed.values():
                self._files.searches.add(search)
                known = {word: numbers for word, numbers in indexed.items() if numbers is not None}
                used = {number for numbers in known.values() for number in numbers}
                self._files.used.update(self._paths[number] for number in used)
                return known
        found: dict[bytes, list[int]] = {needle: [] for needle in needles.values()}
        for number, path in enumerate(self._paths):
            try:
                _, places = self._files.searched(path, search)
            except SourceError:
                continue  # reported where it is a target
            for needle in places:
                found[needle].append(number)
        return {word: found[needle] for word, needle in needles.items()}

    def _each(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number and the bytes of each file that can be read, to index their words."""
        for number, path in enumerate(self._paths):
            try:
                yield number, self._files._bytes(path)
            except SourceError:
                continue  # reported where it is a target
