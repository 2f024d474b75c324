"""Determine the name of a file as a module, and the folders on `sys.path` that it needs.

Folders with `__init__.py` are packages. Other folders may be namespace packages or hold scripts;
the project's own imports decide.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ...analysis.files import Files
from ...discovery.listing import list_files
from ...errors import SourceError
from ...prefilter.code import code_of
from ...prefilter.imports import imports_of


class ImportName(NamedTuple):
    """How to import a file.

    Attributes:
        module: its dotted name; None if it must be loaded by its path.
        folder: the folder that must be on `sys.path`.
    """

    module: str | None
    folder: Path


class Import(NamedTuple):
    """A module that a file may import: `from ..a import b` may import `a` and `a.b` at level 2."""

    level: int
    name: str


class ImportNames:
    """The module names of a project's files.

    Args:
        root: the project's folder, without symbolic links.
    """

    def __init__(self, root: Path) -> None:
        self._files = Files(root, (), list_files(root, lambda name: name.endswith(".py")))
        self.root = root
        self._imports: dict[Path, tuple[Import, ...]] = {}

    @property
    def files(self) -> Collection[Path]:
        """The project's Python files."""
        return self._files.all

    def of(self, path: Path) -> ImportName:
        """Return the module name of a file."""
        bases = [base for base in self._bases(path) if _dotted(path, base)]
        if not bases:
            return ImportName(None, path.parent)
        # A relative import needs as many packages around the file as it has dots.
        deepest = max((found.level for found in self._imported_by(path)), default=0)
        bases = [base for base in bases if _depth(path, base) >= deepest] or bases
        chosen = bases[0]
        if len(bases) > 1:
            direct, beside = self._votes
            by_file, by_group = direct[path], beside[self._group(path)]
            # If several are imported equally often, choose the innermost, which is first.
            chosen = max(bases, key=lambda base: (by_file[base], by_group[base]))
        return ImportName(_dotted(path, chosen), chosen)

    def search_folders(self, path: Path) -> tuple[Path, ...]:
        """Return the project's folders that a file and its imports need on `sys.path`, in order."""
        folders = [self.of(path).folder]
        for target, found in self._reached(path):
            if not found.level:
                folders.append(_base(target, found.name))
        return tuple(dict.fromkeys(folders))

    def run_with(self, path: Path) -> frozenset[Path]:
        """Return the files of the project that run when one is imported, including the file itself.

        Imports by names computed at run time are not known.
        """
        files = {path, *(target for target, _ in self._reached(path))}
        while True:
            packages = {
                package
                for file in files
                for folder in file.parents
                if self._is_package(folder) and (package := folder / "__init__.py").is_file()
            }
            more = {t for p in packages - files for t, _ in self._reached(p)} | packages
            if more <= files:
                return frozenset(files)
            files |= more

    def _reached(self, path: Path) -> Iterator[tuple[Path, Import]]:
        """Yield the project's files that a file imports, with the first import of each."""
        waiting = [path]
        seen = {path}
        for importer in waiting:
            for found in self._imported_by(importer):
                target = self._target(found, importer)
                if target is not None and target not in seen:
                    seen.add(target)
                    waiting.append(target)
                    yield target, found

    # -- candidates

    def _bases(self, path: Path) -> Iterator[Path]:
        """Yield the folders from which a file may be imported, the innermost first."""
        folder = self._group(path)
        folder = folder.parent if self._is_package(folder) else folder
        yield folder
        while self.root in folder.parents and folder.name.isidentifier():
            folder = folder.parent
            yield folder

    def _group(self, path: Path) -> Path:
        """Return the outermost package around a file, or its folder if there is none."""
        folder = path.parent
        if not self._is_package(folder):
            return folder
        while self._is_package(folder.parent):
            folder = folder.parent
        return folder

    def _is_package(self, folder: Path) -> bool:
        return folder.name.isidentifier() and self._files.is_package(folder)

    # -- imports

    @cached_property
    def _votes(self) -> tuple[defaultdict[Path, Counter[Path]], defaultdict[Path, Counter[Path]]]:
        """How often each file, and each group of files, is imported from each folder."""
        direct: defaultdict[Path, Counter[Path]] = defaultdict(Counter)
        beside: defaultdict[Path, Counter[Path]] = defaultdict(Counter)
        for importer in self._files.all:
            for found in self._imported_by(importer):
                target = None if found.level else self._target(found, importer)
                if target is not None:
                    base = _base(target, found.name)
                    direct[target][base] += 1
                    beside[self._group(target)][base] += 1
        return direct, beside

    def _imported_by(self, path: Path) -> tuple[Import, ...]:
        if path not in self._imports:
            try:
                data = self._files.data(path)
            except SourceError:
                data = b""  # reported when the file is checked
            self._imports[path] = tuple(dict.fromkeys(_imports_in(data)))
        return self._imports[path]

    def _target(self, found: Import, importer: Path) -> Path | None:
        """Return the file of the project that an import refers to."""
        if not found.level:
            if found.name.partition(".")[0] in sys.stdlib_module_names:
                return None
            target = self._files.find(found.name, importer)
            # In a package, `import config` refers to another distribution, not to a sibling.
            if target is None or self._is_package(_base(target, found.name)):
                return None
            return target
        folder = importer.parent
        for _ in range(found.level - 1):
            folder = folder.parent
        inner = folder.joinpath(*found.name.split(".")) if found.name else folder
        candidates = (inner / "__init__.py", inner.with_name(f"{inner.name}.py"))
        return next((path for path in candidates if path.is_file()), None)


def _imports_in(data: bytes) -> Iterator[Import]:
    """Yield the modules that a Python file may import; the file need not parse."""
    for found in imports_of(code_of(data)):
        origin = found.base.lstrip(".")
        level = len(found.base) - len(origin)
        if found.base:
            yield Import(level, origin)
        if found.name != "*":
            yield Import(level, f"{origin}.{found.name}" if origin else found.name)


def _dotted(path: Path, base: Path) -> str | None:
    """Return the module name of a file relative to a folder; None if it has none."""
    parts = [*path.relative_to(base).parent.parts, path.stem]
    if parts[-1] == "__init__":
        parts.pop()
    # The top-level module `__main__` is the program that runs, not this file.
    if path.suffix != ".py" or not parts or parts == ["__main__"]:
        return None
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None


def _depth(path: Path, base: Path) -> int:
    """Return the number of packages around a file that is imported from a folder."""
    return len(path.relative_to(base).parent.parts)


def _base(path: Path, dotted: str) -> Path:
    """Return the folder from which a file is imported by a name."""
    above = path.parent.parent if path.name == "__init__.py" else path.parent
    for _ in range(dotted.count(".")):
        above = above.parent
    return above
