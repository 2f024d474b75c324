"""The states of files: what tells, without reading it, that a file is what it was.

As in git's index it is size, times and inode. Times are coarse: a file that was written within two
seconds of the moment at which its state was taken may change once more and look the same. Such
*recent* files are compared by content as long as that is so.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# The coarsest clock of a file system that is in use: FAT's.
_COARSE_NS = 2 * 10**9
_ABSENT = "-"


@dataclass(frozen=True, slots=True)
class States:
    """The states of files at one moment.

    Attributes:
        files: state by name; `-` for what is no file.
        recent: those that may change once more and look the same.
    """

    files: Mapping[str, str]
    recent: frozenset[str] = frozenset()

    def changed(self, name: str) -> int:
        """When a file changed, in ns since the epoch; 0 for what is no file."""
        _, *times = self.files[name].split()
        return max(map(int, times[:2]), default=0)


def states_of(names: Iterable[str], moment: int) -> States:
    """The states of files, taken at or after a moment (ns since the epoch)."""
    files: dict[str, str] = {}
    recent: list[str] = []
    edge = moment - _COARSE_NS
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


def is_there(state: str) -> bool:
    """Whether a state is one of a file."""
    return state != _ABSENT


def content_of(name: str, state: str) -> str | None:
    """The hash of a file's content; None if its state is another one, or it cannot be read."""
    try:
        with open(name, "rb", buffering=0, opener=_at_once) as file:
            if _state(os.fstat(file.fileno())) != state:
                return None
            data = file.read()
            if _state(os.fstat(file.fileno())) != state:
                return None
    except (OSError, ValueError):
        return None
    return hashlib.sha256(data).hexdigest()


def _at_once(name: str, flags: int) -> int:
    """Open a file; a pipe that has taken its place is not waited for."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def _state(found: os.stat_result) -> str:
    if not stat.S_ISREG(found.st_mode):
        return _ABSENT
    # The inode's number changes where a file is replaced by one with its times.
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"
