"""Regular files: reading one, and whether it may be replaced."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_BINARY: int = getattr(os, "O_BINARY", 0)


def write_obstacle(path: Path) -> str | None:
    """Return why a file must not be written; None if it may be.

    Replacing a file only needs write access to its folder, and root may write anything. To respect
    `chmod -w` this checks the mode of the file itself.
    """
    try:
        found = path.stat()
    except OSError as error:
        return f"cannot be accessed: {error.strerror or error}"
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    if not found.st_mode & 0o222:
        return "is read-only; make it writable (chmod +w) to fix it"
    if not os.access(path, os.W_OK):
        return "is not writable by this user"
    if not os.access(path.resolve().parent, os.W_OK | os.X_OK):
        return "is in a folder that is not writable by this user"
    return None


def read_regular(path: Path, *, linked: bool = False) -> bytes:
    """Read a regular file, without blocking on a pipe.

    Args:
        path: the file.
        linked: whether to follow a symbolic link.

    Raises:
        OSError: the file cannot be read, or is not a regular file.
    """
    flags = os.O_RDONLY | _BINARY | getattr(os, "O_NONBLOCK", 0)
    if not linked:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP and not linked:
            raise OSError(errno.ELOOP, "it is a symbolic link") from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)
