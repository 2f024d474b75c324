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
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..text.folders import Folder, open_folder

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
def open_cache(path: Path, *, outside: Path) -> Iterator[CacheFolder | None]:
    """Open the folder, creating it if needed; None if it is not safe to use.

    Args:
        path: the folder.
        outside: a folder that must not contain it.
    """
    real = Path(os.path.realpath(path.parent), path.name)
    with ExitStack() as opened:
        cache = None
        with suppress(OSError, ValueError):
            if not Path(os.path.realpath(real)).is_relative_to(outside):
                os.makedirs(real.parent, exist_ok=True)
                with suppress(FileExistsError):
                    os.mkdir(real, 0o700)
                folder = opened.enter_context(open_folder(real, real))
                found = folder.stat(os.curdir)
                cache = CacheFolder(folder) if found and _is_own(found) else None
        yield cache


class CacheFolder:
    """A folder of entries that is safe to use."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def read(self, name: str) -> bytes | None:
        """Return an entry; None if there is none, or it is not safe to use."""
        try:
            with open(self._folder.open(name), "rb") as file:
                found = os.fstat(file.fileno())
                if not _is_own(found) or found.st_size > MAX_BYTES:
                    return None
                data = file.read()
                # Keeps used entries from being pruned; once a day is enough.
                if _IS_POSIX and time.time() - found.st_mtime > _DAY:
                    os.utime(file.fileno())
        except OSError:
            return None
        return data

    def write(self, name: str, data: bytes) -> bool:
        """Write an entry atomically, and return whether that worked."""
        if len(data) > MAX_BYTES:
            return False
        temporary = f".{name}.{os.getpid():x}{time.time_ns():x}.tmp"
        try:
            handle = self._folder.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError:
            return False
        try:
            # Not synced: a damaged entry is not used.
            with open(handle, "wb") as file:
                file.write(data)
            self._folder.rename(temporary, name)
        except BaseException as error:
            self._folder.discard(temporary)
            if isinstance(error, OSError):
                return False
            raise
        self._prune()
        return True

    def _prune(self) -> None:
        """Remove old and surplus entries, and temporary files of killed runs."""
        now = time.time()
        entries: list[tuple[float, int, str]] = []
        with suppress(OSError):
            for name in self._folder.names():
                found = self._folder.stat(name)
                if found is not None and _ENTRY.fullmatch(name):
                    entries.append((found.st_mtime, found.st_size, name))
                elif found is not None and _TEMPORARY.fullmatch(name):
                    if now - found.st_mtime > _HOUR:
                        self._folder.discard(name)
        total = 0
        for number, (used, size, name) in enumerate(sorted(entries, reverse=True)):
            total += size
            old = now - used > _MAX_DAYS * _DAY
            if old or number >= _MAX_ENTRIES or total > _MAX_TOTAL_BYTES:
                self._folder.discard(name)


def _is_own(found: os.stat_result) -> bool:
    """Return whether a file or folder is owned by the user and not writable by others."""
    if not _IS_POSIX:
        return True  # The system protects the user's profile.
    return found.st_uid == os.geteuid() and not found.st_mode & _WRITABLE_BY_OTHERS
