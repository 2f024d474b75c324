"""The cache folder, which belongs to the user and lies outside the project.

Anyone who can write to the cache can control what the tool reports. Therefore the folder and its
files must be owned by the user, not be writable by others, and not be symbolic links; otherwise
they are not used. A folder inside the project is not used either, so that a repository cannot ship
a cache.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

VARIABLE = "REMAT_MIGRATE_CACHE_DIR"
# Reading a larger entry takes longer than most runs.
MAX_BYTES = 20 * 2**20

_MAX_ENTRIES = 100
_MAX_TOTAL_BYTES = 50 * 2**20
_MAX_DAYS = 30
_ENTRY = re.compile(r"[0-9a-f]{64}\.json")
_TEMPORARY = re.compile(r"\.[0-9a-f]{64}\.json\.[0-9a-f]+\.tmp")
_HOUR, _DAY = 3600.0, 86400.0
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_BLOCK = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_IS_POSIX = os.name == "posix"


def cache_folder() -> Path | None:
    """Return the cache folder; None if the system has no place for caches.

    `REMAT_MIGRATE_CACHE_DIR` overrides it.
    """
    if named := os.environ.get(VARIABLE):
        return Path(os.path.abspath(named))
    variable = "LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME"
    above = os.environ.get(variable, "")
    # The XDG Base Directory Specification says to ignore relative paths.
    if not os.path.isabs(above):
        between = "Library/Caches" if sys.platform == "darwin" else ".cache"
        above = os.path.join(os.path.expanduser("~"), between)
    return Path(above, "remat-migrate") if os.path.isabs(above) else None


@contextmanager
def open_folder(path: Path, *, outside: Path) -> Iterator[Folder | None]:
    """Open the folder, creating it if needed; None if it is not safe to use.

    Args:
        path: the folder.
        outside: a folder that must not contain it.
    """
    if Path(os.path.realpath(path)).is_relative_to(outside):
        yield None
        return
    handle: int | None = None
    try:
        os.makedirs(path.parent, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        if _IS_POSIX:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK)
            is_safe = _is_own(os.fstat(handle))
        else:
            is_safe = path.is_dir() and not path.is_symlink()
    except (OSError, ValueError):
        is_safe = False
    try:
        yield Folder(path, handle) if is_safe else None
    finally:
        if handle is not None:
            os.close(handle)


class Folder:
    """A folder of entries that is safe to use.

    On POSIX, all operations are relative to the open folder, so replacing it has no effect.
    """

    def __init__(self, path: Path, handle: int | None) -> None:
        self._path = path
        self._handle = handle

    def read(self, name: str) -> bytes | None:
        """Return an entry; None if there is none, or it is not safe to use."""
        flags = os.O_RDONLY | _NO_LINK | _NO_BLOCK | _BINARY
        try:
            handle = os.open(self._at(name), flags, dir_fd=self._handle)
        except OSError:
            return None
        with open(handle, "rb") as file:
            found = os.fstat(handle)
            if not (stat.S_ISREG(found.st_mode) and _is_own(found)):
                return None
            if found.st_size > MAX_BYTES:
                return None
            try:
                data = file.read()
                # Keeps used entries from being pruned; once a day is enough.
                if _IS_POSIX and time.time() - found.st_mtime > _DAY:
                    os.utime(handle)
            except OSError:
                return None
        return data

    def write(self, name: str, data: bytes) -> bool:
        """Write an entry atomically, and return whether that worked."""
        if len(data) > MAX_BYTES:
            return False
        temporary = f".{name}.{os.getpid():x}{time.time_ns():x}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BINARY
        try:
            handle = os.open(self._at(temporary), flags, 0o600, dir_fd=self._handle)
        except OSError:
            return False
        try:
            with open(handle, "wb") as file:
                file.write(data)
            os.replace(
                self._at(temporary),
                self._at(name),
                src_dir_fd=self._handle,
                dst_dir_fd=self._handle,
            )
        except OSError:
            self._remove(temporary)
            return False
        except BaseException:
            self._remove(temporary)
            raise
        self._prune()
        return True

    def _prune(self) -> None:
        """Remove old and surplus entries, and temporary files of killed runs."""
        now = time.time()
        entries: list[tuple[float, int, str]] = []
        with suppress(OSError):
            for name in os.listdir(self._path if self._handle is None else self._handle):
                try:
                    found = os.stat(self._at(name), dir_fd=self._handle, follow_symlinks=False)
                except OSError:
                    continue
                if _ENTRY.fullmatch(name):
                    entries.append((found.st_mtime, found.st_size, name))
                elif _TEMPORARY.fullmatch(name) and now - found.st_mtime > _HOUR:
                    self._remove(name)
        total = 0
        for number, (used, size, name) in enumerate(sorted(entries, reverse=True)):
            total += size
            old = now - used > _MAX_DAYS * _DAY
            if old or number >= _MAX_ENTRIES or total > _MAX_TOTAL_BYTES:
                self._remove(name)

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(self._at(name), dir_fd=self._handle)

    def _at(self, name: str) -> str:
        return name if self._handle is not None else str(self._path / name)


def _is_own(found: os.stat_result) -> bool:
    """Return whether a file or folder is owned by the user and not writable by others."""
    if not _IS_POSIX:
        return True  # The system protects the user's profile.
    return found.st_uid == os.geteuid() and not found.st_mode & _WRITABLE_BY_OTHERS
