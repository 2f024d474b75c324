"""The cache's folder: the user's own, outside of any project, that nobody else can write to.

A cache that somebody else could fill would say what they like about a project. So folder and files
must belong to the user, be writable by no one else, and be no links; else they are left alone. A
repository must not be able to bring a cache along, so none is used that lies in the project.
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
# What is larger takes longer to read than most runs take.
MOST_BYTES = 20 * 2**20

_MOST_ENTRIES = 100
_MOST_BYTES_IN_ALL = 50 * 2**20
_MOST_DAYS = 30
_ENTRY = re.compile(r"[0-9a-f]{64}\.json")
_TEMPORARY = re.compile(r"\.[0-9a-f]{64}\.json\.[0-9a-f]+\.tmp")
_HOUR, _DAY = 3600.0, 86400.0
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# A pipe is not waited for.
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_IS_POSIX = os.name == "posix"


def cache_folder() -> Path | None:
    """Where the user's caches are kept; None where the system does not say.

    `REMAT_MIGRATE_CACHE_DIR` names the folder itself.
    """
    if named := os.environ.get(VARIABLE):
        return Path(os.path.abspath(named))
    variable = "LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME"
    above = os.environ.get(variable, "")
    # A relative path there is to be ignored (XDG Base Directory Specification).
    if not os.path.isabs(above):
        between = "Library/Caches" if sys.platform == "darwin" else ".cache"
        above = os.path.join(os.path.expanduser("~"), between)
    return Path(above, "remat-migrate") if os.path.isabs(above) else None


@contextmanager
def opened(path: Path, *, outside: Path) -> Iterator[Folder | None]:
    """Open a folder for entries, which is made if it is not there.

    Args:
        path: the folder.
        outside: a folder that it must not lie in.

    Returns:
        None if it cannot be made or is not fit for use.
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
            is_fit = _is_own(os.fstat(handle))
        else:
            is_fit = path.is_dir() and not path.is_symlink()
    except (OSError, ValueError):
        is_fit = False
    try:
        yield Folder(path, handle) if is_fit else None
    finally:
        if handle is not None:
            os.close(handle)


class Folder:
    """A folder of entries that is fit for use.

    On POSIX everything is done relative to the opened folder, so that nothing that is put in its
    place is taken for it.
    """

    def __init__(self, path: Path, handle: int | None) -> None:
        self._path = path
        self._handle = handle

    def read(self, name: str) -> bytes | None:
        """An entry; None if there is none that is fit for use."""
        flags = os.O_RDONLY | _NO_LINK | _AT_ONCE | _BINARY
        try:
            handle = os.open(self._at(name), flags, dir_fd=self._handle)
        except OSError:
            return None
        with open(handle, "rb") as file:
            found = os.fstat(handle)
            if not (stat.S_ISREG(found.st_mode) and _is_own(found)):
                return None
            if found.st_size > MOST_BYTES:
                return None
            try:
                data = file.read()
                # So that what is used is not the first to go; once a day is enough for that.
                if _IS_POSIX and time.time() - found.st_mtime > _DAY:
                    os.utime(handle)
            except OSError:
                return None
        return data

    def write(self, name: str, data: bytes) -> bool:
        """Write an entry, whole or not at all; False if it cannot be written."""
        if len(data) > MOST_BYTES:
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
        """Remove entries that are old or too many, and what runs that were killed left behind."""
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
            old = now - used > _MOST_DAYS * _DAY
            if old or number >= _MOST_ENTRIES or total > _MOST_BYTES_IN_ALL:
                self._remove(name)

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(self._at(name), dir_fd=self._handle)

    def _at(self, name: str) -> str:
        return name if self._handle is not None else str(self._path / name)


def _is_own(found: os.stat_result) -> bool:
    """Whether a file or folder is the user's, and nobody else may write to it."""
    if not _IS_POSIX:
        return True  # in the user's profile, which the system guards
    return found.st_uid == os.geteuid() and not found.st_mode & _WRITABLE_BY_OTHERS
