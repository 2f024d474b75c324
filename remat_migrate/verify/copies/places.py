"""Under which name a file is imported, and which folders must be searched for that.

A file in a package, that is in folders with `__init__.py`, has the name that these give it. Folders
without one may be namespace packages or hold scripts: which it is, the project's own imports tell.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ...analysis.files import Files
from ...discovery.discover import list_files
from ...errors import SourceError

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(?P<dots>[.]*)[ \t]*(?P<origin>[\w.]*)[ \t]+import[ \t]*"
    rb"(?:\((?P<many>[^)]*)\)|(?P<few>[^\n#;]*))"
    rb"|import[ \t]+(?P<modules>[^\n#;]+))",
    re.MULTILINE,
)
_COMMENT = re.compile(r"#[^\n]*")


class Place(NamedTuple):
    """How a file is imported.

    Attributes:
        module: its dotted name; None if it has none and must be loaded by its path.
        folder: what must be on `sys.path`.
    """

    module: str | None
    folder: Path


class Import(NamedTuple):
    """A module that a file may import: `from ..a import b` may be `a` and `a.b`, two levels up."""

    level: int
    name: str


def module_name(path: Path, root: Path) -> Place:
    """How one file of the project at `root` is imported."""
    return Places(root).of(path)


class Places:
    """How the files of a project are imported.

    Args:
        root: the project's folder, without symbolic links.
        files: its Python files; by default all that are not ignored.
    """

    def __init__(self, root: Path, files: Iterable[Path] | None = None) -> None:
        if files is None:
            files = list_files(root, lambda name: name.endswith(".py"))
        self._files = Files(root, (), files)
        self.root = root
        self._imports: dict[Path, tuple[Import, ...]] = {}

    def of(self, path: Path) -> Place:
        """The name of a file and the folder from which it is imported by that name."""
        bases = [base for base in self._bases(path) if _dotted(path, base)]
        if not bases:
            return Place(None, path.parent)
        # `from .. import x` needs as many packages around the file as it has dots.
        deepest = max((found.level for found in self._imported_by(path)), default=0)
        bases = [base for base in bases if _depth(path, base) >= deepest] or bases
        chosen = bases[0]
        if len(bases) > 1:
            direct, beside = self._votes
            by_file, by_group = direct[path], beside[self._group(path)]
            # The first of those that are imported equally often is the innermost.
            chosen = max(bases, key=lambda base: (by_file[base], by_group[base]))
        return Place(_dotted(path, chosen), chosen)

    def search_folders(self, path: Path) -> tuple[Path, ...]:
        """What must be on `sys.path` so that a file and all that it imports are found, in order.

        Only the project's own folders; those of installed packages are there already.
        """
        folders = [self.of(path).folder]
        for target, found in self._reached(path):
            if not found.level:
                folders.append(_base(target, found.name))
        return tuple(dict.fromkeys(folders))

    def run_with(self, path: Path) -> frozenset[Path]:
        """The files of the project that run when one is imported, itself among them.

        As far as its imports tell: what is imported by a name made at run time is not known.
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
        """The project's files that one imports, and those import, each with its first import."""
        waiting = [path]
        seen = {path}
        for importer in waiting:
            for found in self._imported_by(importer):
                target = self._target(found, importer)
                if target is not None and target not in seen:
                    seen.add(target)
                    waiting.append(target)
                    yield target, found

    # -- where a file may be imported from

    def _bases(self, path: Path) -> Iterator[Path]:
        """The folders from which a file may be imported, the innermost first."""
        folder = self._group(path)
        folder = folder.parent if self._is_package(folder) else folder
        yield folder
        while self.root in folder.parents and folder.name.isidentifier():
            folder = folder.parent
            yield folder

    def _group(self, path: Path) -> Path:
        """The outermost package around a file, or the folder of one that is in none."""
        folder = path.parent
        if not self._is_package(folder):
            return folder
        while self._is_package(folder.parent):
            folder = folder.parent
        return folder

    def _is_package(self, folder: Path) -> bool:
        return folder.name.isidentifier() and self._files.is_package(folder)

    # -- what imports tell

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
                data = b""  # said where the file is looked at
            self._imports[path] = tuple(dict.fromkeys(imports_in(data)))
        return self._imports[path]

    def _target(self, found: Import, importer: Path) -> Path | None:
        """The file of the project that an import means."""
        if not found.level:
            if found.name.partition(".")[0] in sys.stdlib_module_names:
                return None
            target = self._files.find(found.name, importer)
            # In a package `import config` is another distribution's, not the file beside it.
            if target is None or self._is_package(_base(target, found.name)):
                return None
            return target
        folder = importer.parent
        for _ in range(found.level - 1):
            folder = folder.parent
        inner = folder.joinpath(*found.name.split(".")) if found.name else folder
        candidates = (inner / "__init__.py", inner.with_name(f"{inner.name}.py"))
        return next((path for path in candidates if path.is_file()), None)


def imports_in(data: bytes) -> Iterator[Import]:
    """The modules that a Python file may import, told from its lines: it need not parse."""
    for match in _IMPORT.finditer(data):
        parts = {
            name: text.decode(errors="replace")
            for name, text in match.groupdict().items()
            if text is not None
        }
        if "modules" in parts:
            yield from (Import(0, name) for name in _names(parts["modules"]))
            continue
        level, origin = len(parts["dots"]), parts["origin"]
        if level or origin:
            yield Import(level, origin)
            for name in _names(parts.get("many") or parts.get("few") or ""):
                yield Import(level, f"{origin}.{name}" if origin else name)


def _names(text: str) -> Iterator[str]:
    """What stands before `as` in `a.b as c, d`."""
    for part in _COMMENT.sub("", text).replace("\\", " ").split(","):
        name = part.split()[0] if part.split() else ""
        if name and all(piece.isidentifier() for piece in name.split(".")):
            yield name


def _dotted(path: Path, base: Path) -> str | None:
    """The name of a file seen from a folder; None if it cannot be imported from there."""
    parts = [*path.relative_to(base).parent.parts, path.stem]
    if parts[-1] == "__init__":
        parts.pop()
    # What is called `__main__` at the top is whatever runs, not this file.
    if path.suffix != ".py" or not parts or parts == ["__main__"]:
        return None
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None


def _depth(path: Path, base: Path) -> int:
    """How many packages are around a file that is imported from a folder."""
    return len(path.relative_to(base).parent.parts)


def _base(path: Path, dotted: str) -> Path:
    """The folder from which a file is imported by that name."""
    above = path.parent.parent if path.name == "__init__.py" else path.parent
    for _ in range(dotted.count(".")):
        above = above.parent
    return above
