"""Folders outside of projects that only the user can write to: the cache, and the undo journal.

Anyone who can write there controls what the tool reports or restores. Therefore a folder and its
files must be owned by the user, not be writable by others, and not be symbolic links; otherwise
they are not used. A folder inside the project is not used either, because a repository could ship
it.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from .folders import Folder, open_folder
from .regular_files import read_open

# Reading a larger file takes longer than most runs.
MAX_BYTES = 20 * 2**20

_DAY = 86400.0
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_IS_POSIX = os.name == "posix"


def user_folder(variable: str, on_linux: str, on_macos: str) -> Path | None:
    """Return the tool's folder for one kind of data; None if the system has no place for it.

    Args:
        variable: the variable of the XDG Base Directory Specification.
        on_linux: the default, relative to the home folder.
        on_macos: likewise.
    """
    variable = "LOCALAPPDATA" if os.name == "nt" else variable
    above = os.environ.get(variable, "")
    # The XDG Base Directory Specification says to ignore relative paths.
    if not os.path.isabs(above):
        between = on_macos if sys.platform == "darwin" else on_linux
        above = os.path.join(os.path.expanduser("~"), between)
    return Path(above, "remat-migrate") if os.path.isabs(above) else None


@contextmanager
def open_private(path: Path, *, outside: Path) -> Iterator[PrivateFolder | None]:
    """Open a folder, creating it if needed; None if it is not safe to use.

    Args:
        path: the folder.
        outside: a folder that must not contain it.
    """
    real = Path(os.path.realpath(path.parent), path.name)
    with ExitStack() as opened:
        private = None
        with suppress(OSError, ValueError):
            if not Path(os.path.realpath(real)).is_relative_to(outside):
                os.makedirs(real.parent, exist_ok=True)
                with suppress(FileExistsError):
                    os.mkdir(real, 0o700)
                folder = opened.enter_context(open_folder(real, real))
                found = folder.stat(os.curdir)
                private = PrivateFolder(folder) if found and _is_own(found) else None
        yield private


class PrivateFolder:
    """A folder that is safe to use."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none, or it is not safe to use."""
        try:
            with open(self.folder.open(name), "rb") as file:
                found = os.fstat(file.fileno())
                # Keeps used files from being removed as old; once a day is enough.
                if _IS_POSIX and time.time() - found.st_mtime > _DAY:
                    os.utime(file.fileno())
                return read_open(file.fileno(), MAX_BYTES) if _is_own(found) else None
        except OSError:
            return None

    def write(self, name: str, data: bytes) -> bool:
        """Write a file atomically, and return whether that worked."""
        if len(data) > MAX_BYTES:
            return False
        temporary = f".{name}.{os.getpid():x}{time.time_ns():x}.tmp"
        try:
            # Not synced: damaged content is not used.
            self.folder.create(temporary, data, mode=0o600, is_synced=False)
            self.folder.replace(temporary, name)
        except OSError:
            return False
        return True


def _is_own(found: os.stat_result) -> bool:
    """Return whether a file or folder is owned by the user and not writable by others."""
    if not _IS_POSIX:
        return True  # The system protects the user's profile.
    return found.st_uid == os.geteuid() and not found.st_mode & _WRITABLE_BY_OTHERS
