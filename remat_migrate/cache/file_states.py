"""File states, which tell without reading a file that it has not changed.

As in git's index, a state is made of size, times and inode. Timestamps are coarse: a file that was
written within two seconds of taking its state may change again and keep the state. Such *recent*
files are compared by content.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..text.regular_files import COARSE_NS, MAX_BYTES

_ABSENT = "-"


@dataclass(frozen=True, slots=True)
class States:
    """The states of files at one moment.

    Attributes:
        files: the state of each name; `-` if it is not a file.
        recent: the files that may change without changing their state.
    """

    files: Mapping[str, str]
    recent: frozenset[str] = frozenset()

    def changed(self, name: str) -> int:
        """Return when a file changed, in nanoseconds since the epoch; 0 if it is not a file."""
        _, *times = self.files[name].split()
        return max(map(int, times[:2]), default=0)


def states_of(names: Iterable[str], moment: int) -> States:
    """Take the states of files at or after a moment, in nanoseconds since the epoch."""
    files: dict[str, str] = {}
    recent: list[str] = []
    edge = moment - COARSE_NS
    for name in names:
        try:
            found = os.stat(name)
        except (OSError, ValueError):
            files[name] = _ABSENT
            continue
        files[name] = _state(found)
        if found.st_mtime_ns >= edge or found.st_ctime_ns >= edge:
            recent.append(name)
    return States(files, frozenset(recent))


def exists(state: str) -> bool:
    """Return whether a state is that of a file."""
    return state != _ABSENT


def content(name: str, state: str) -> bytes | None:
    """Return the content of a file; None if it is unreadable or its state changed."""
    try:
        with open(name, "rb", buffering=0, opener=_open_without_blocking) as file:
            if _state(os.fstat(file.fileno())) != state:
                return None
            if os.fstat(file.fileno()).st_size > MAX_BYTES:
                return None
            data = file.read()
            return data if _state(os.fstat(file.fileno())) == state else None
    except (OSError, ValueError):
        return None


def content_hash(name: str, state: str) -> str | None:
    """Return the hash of a file's content; None if it is unreadable or its state changed."""
    data = content(name, state)
    return None if data is None else hash_of(data)


def hash_of(data: bytes) -> str:
    """Return the hash of a content."""
    return hashlib.sha256(data).hexdigest()


def _open_without_blocking(name: str, flags: int) -> int:
    """Open a file without blocking if it was replaced by a pipe."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def _state(found: os.stat_result) -> str:
    if not stat.S_ISREG(found.st_mode):
        return _ABSENT
    # The inode changes if a file is replaced by one with the same times.
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"
