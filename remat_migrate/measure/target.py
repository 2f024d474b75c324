"""Targets: functions named as `module:function` or `path/to/file.py:function`."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from ..discovery.roots import find_root
from ..errors import UsageError
from ..verify.copies.import_names import ImportNames


@dataclass(frozen=True, slots=True)
class Target:
    """A function in the user's code.

    Attributes:
        text: target as the user wrote it.
        module: dotted name of the module; None for a file outside any package.
        path: file of the module; None if it is unknown before the import.
        qualname: qualified name within the module.
        root: project folder.
        folders: folders to put on `sys.path`, in order.
    """

    text: str
    module: str | None
    path: Path | None
    qualname: str
    root: Path
    folders: tuple[Path, ...]


def parse_target(text: str, folder: Path) -> Target:
    """Parse a target relative to a folder.

    Raises:
        UsageError: `text` has neither form, or the file does not exist.
    """
    where, colon, qualname = text.rpartition(":")
    if not colon or not where or not _is_dotted(qualname):
        raise UsageError(f"{text}: name a function as module:function or path/to/file.py:function")
    if where.endswith(".py") or "/" in where:
        path = (folder / where).resolve()
        if not path.is_file():
            raise UsageError(f"{text}: {where}: no such file")
        root = find_root([path]).resolve()
        import_names = _import_names(root)
        module = import_names.of(path).module
        return Target(text, module, path, qualname, root, import_names.search_folders(path))
    if not _is_dotted(where):
        raise UsageError(f"{text}: {where} is not a module name")
    root = find_root([folder]).resolve()
    found = _module_file(where, folder.resolve(), root)
    if found is None:
        # An installed module, or one on the interpreter's own search path.
        return Target(text, where, None, qualname, root, (folder.resolve(), root))
    path, base = found
    folders = dict.fromkeys((base, *_import_names(root).search_folders(path)))
    return Target(text, where, path, qualname, root, tuple(folders))


@functools.lru_cache(maxsize=4)
def _import_names(root: Path) -> ImportNames:
    """Return the module names of a project, which are slow to find in a large one."""
    return ImportNames(root)


def _module_file(module: str, folder: Path, root: Path) -> tuple[Path, Path] | None:
    """Return the file of a project module, and the folder to import it from."""
    inner = Path(*module.split("."))
    for base in dict.fromkeys((folder, folder / "src", root, root / "src")):
        for candidate in (base / inner.with_suffix(".py"), base / inner / "__init__.py"):
            if candidate.is_file():
                return candidate, base
    return None


def _is_dotted(text: str) -> bool:
    return bool(text) and all(part.isidentifier() for part in text.split("."))
