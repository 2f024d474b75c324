"""Redirect imports of the user's project to a copy, and block writes to the original.

An interpreter may find the project in its original folder: through an editable install, an entry
of PYTHONPATH, or a path that a program inserts. Modules in that folder are imported from the copy
instead. Modules that the copy lacks are not found, except for compiled ones, which no migration
changes. Writes are blocked because the copy links what is large.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Any

# Events of `sys.audit` that change files, with the places of paths among their arguments.
_WRITES: dict[str, tuple[int, ...]] = {
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.link": (0, 1),
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.removexattr": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.setxattr": (0,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.utime": (0,),
    "shutil.rmtree": (0,),
    "sqlite3.connect": (0,),
}
_OPEN_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_LIBRARIES = frozenset(["site-packages", "dist-packages"])


def install(original_root: str, copy_root: str) -> None:
    """Redirect this process from the project at `original_root` to its copy, once for each pair."""
    places = Places(original_root, copy_root)
    if places.original == places.copy or places in _installed:
        return
    _installed.append(places)
    sys.path[:] = [places.moved(entry) or entry for entry in sys.path]
    sys.meta_path.insert(0, _Redirecting(places))
    sys.addaudithook(_Guard(places))


class Places:
    """The original and the copy, with symbolic links resolved."""

    def __init__(self, original: str, copy: str) -> None:
        self.spelled = os.path.abspath(original)
        self.original = os.path.realpath(original)
        self.copy = os.path.realpath(copy)
        libraries = (sys.prefix, sys.exec_prefix, sys.base_prefix)
        self._libraries = [os.path.realpath(each) for each in libraries]
        self._own = os.path.dirname(os.path.realpath(__file__))

    def __eq__(self, other: Any) -> Any:
        return (self.original, self.copy) == (other.original, other.copy)

    def moved(self, path: Any) -> str | None:
        """Return the path in the copy for a path in the project; None for any other path.

        Packages installed in an environment below the project are none of it.
        """
        if not isinstance(path, str) or not os.path.isabs(path):
            return None
        for root in (self.spelled, self.original):
            inside = _below(os.path.normpath(path), root)
            if inside is not None:
                break
        else:
            real = os.path.realpath(path)
            inside = _below(real, self.original)
            if inside is None:
                return None
        found = os.path.join(self.original, inside)
        if _below(found, self.copy) is not None or self._is_library(found):
            return None
        return os.path.normpath(os.path.join(self.copy, inside))

    def _is_library(self, path: str) -> bool:
        if not _LIBRARIES.isdisjoint(path.split(os.sep)) or _below(path, self._own) is not None:
            return True
        return any(
            _below(prefix, self.original) is not None and _below(path, prefix) is not None
            for prefix in self._libraries
        )


_installed: list[Places] = []


def _below(path: str, root: str) -> str | None:
    """Return a path relative to a folder, "" for the folder itself; None if it is not inside."""
    if path == root:
        return ""
    start = root if root.endswith(os.sep) else root + os.sep
    return path[len(start) :] if path.startswith(start) else None


class _Redirecting:
    """The first finder: asks the others, and redirects what they find in the project."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec that the other finders give, in the copy if it was in the project."""
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                return self._moved(name, spec)
        return None

    def _moved(
        self, name: str, spec: importlib.machinery.ModuleSpec
    ) -> importlib.machinery.ModuleSpec | None:
        locations = spec.submodule_search_locations
        moved = self._places.moved(spec.origin) if spec.has_location else None
        if moved is None:
            if locations is not None and spec.loader is None:
                spec.submodule_search_locations = [self._places.moved(p) or p for p in locations]
            return spec
        if not os.path.exists(moved):
            if _is_compiled(spec.origin):
                return spec
            # After None, the finder that knows the project would be asked next.
            raise ModuleNotFoundError("No module named {!r}".format(name), name=name)
        folders = None
        if locations is not None:
            folders = [self._places.moved(each) or each for each in locations]
        return importlib.util.spec_from_file_location(
            name, moved, submodule_search_locations=folders
        )


def _is_compiled(origin: str | None) -> bool:
    return (origin or "").endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))


class _Guard:
    """An audit hook that blocks writes to the project."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        places = self._places
        for path in written_paths(event, args):
            if _below(path, places.original) is not None and _below(path, places.copy) is None:
                raise PermissionError(
                    "remat-migrate runs this code in a copy of the project and blocks writes to"
                    " {}: use a path relative to the running file or the working folder".format(
                        path
                    )
                )


def written_paths(event: str, args: tuple[Any, ...]) -> list[str]:
    """Return the real paths of the files that an event of `sys.audit` changes."""
    if event == "open":
        path, mode, flags = args
        if isinstance(mode, str):
            writes = not _READING.issuperset(mode)
        else:
            writes = bool(isinstance(flags, int) and flags & _OPEN_TO_WRITE)
        return _real(path, follow=True) if writes else []
    if event not in _WRITES:
        return []
    follow = event in _FOLLOWING
    if event in _BELOW_DESCRIPTOR and args[1] >= 0:
        return _real(os.path.join(_path_of(args[1]), os.fsdecode(args[0])), follow)
    return [path for place in _WRITES[event] for path in _real(args[place], follow)]


def _path_of(descriptor: int) -> str:
    """Return the path of an open folder."""
    import fcntl

    if hasattr(fcntl, "F_GETPATH"):  # macOS
        found: bytes = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024))
        return os.fsdecode(found.rstrip(b"\0"))
    return os.readlink("/proc/self/fd/%d" % descriptor)


def _real(path: Any, follow: bool) -> list[str]:
    """Return a path without links, the last part of it only to `follow`; none of a descriptor."""
    if isinstance(path, int) or path is None:
        return []
    folder, name = os.path.split(os.path.abspath(os.fsdecode(path)))
    real = os.path.join(os.path.realpath(folder), name)
    return [os.path.realpath(real) if follow else real]


_READING = frozenset("rbtU")
# How `shutil.rmtree` removes what is in a folder: the second argument is its descriptor, or -1.
_BELOW_DESCRIPTOR = frozenset(["os.remove", "os.rmdir"])
# These follow symbolic links; the others change the link itself.
_FOLLOWING = frozenset(["os.chmod", "os.chown", "os.truncate", "os.utime", "sqlite3.connect"])
