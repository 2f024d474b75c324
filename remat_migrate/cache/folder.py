"""The cache folder, which belongs to the user and lies outside the project."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from ..text.private_folders import PrivateFolder, user_folder

VARIABLE = "REMAT_MIGRATE_CACHE_DIR"

_MAX_ENTRIES = 100
_MAX_TOTAL_BYTES = 50 * 2**20
_MAX_DAYS = 30
_ENTRY = re.compile(r"[0-9a-f]{64}\.json")
_TEMPORARY = re.compile(r"\.[0-9a-f]{64}\.json\.[0-9a-f]+\.tmp")
_HOUR, _DAY = 3600.0, 86400.0


def cache_folder() -> Path | None:
    """Return the cache folder; None if the system has no place for caches.

    `REMAT_MIGRATE_CACHE_DIR` overrides it.
    """
    if named := os.environ.get(VARIABLE):
        return Path(os.path.abspath(named))
    return user_folder("XDG_CACHE_HOME", ".cache", "Library/Caches")


def store_entry(cache: PrivateFolder, name: str, data: bytes) -> None:
    """Write an entry if possible, and remove old and surplus ones."""
    if cache.write(name, data):
        _prune(cache)


def _prune(cache: PrivateFolder) -> None:
    """Remove old and surplus entries, and temporary files of killed runs."""
    now = time.time()
    folder = cache.folder
    entries: list[tuple[float, int, str]] = []
    with suppress(OSError):
        for name in folder.names():
            found = folder.stat(name)
            if found is not None and _ENTRY.fullmatch(name):
                entries.append((found.st_mtime, found.st_size, name))
            elif found is not None and _TEMPORARY.fullmatch(name):
                if now - found.st_mtime > _HOUR:
                    folder.discard(name)
    total = 0
    for number, (used, size, name) in enumerate(sorted(entries, reverse=True)):
        total += size
        old = now - used > _MAX_DAYS * _DAY
        if old or number >= _MAX_ENTRIES or total > _MAX_TOTAL_BYTES:
            folder.discard(name)
