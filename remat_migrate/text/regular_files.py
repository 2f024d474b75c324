"""Regular files: reading one, and whether it may be replaced."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

# For settings and baselines. A sparse file can have any size.
_MOST_BYTES = 64 << 20
# The resolution of times of FAT, the coarsest of file systems in use.
COARSE_NS = 2 * 10**9
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


def read_regular(path: Path) -> bytes:
    """Read a regular file, or one behind a symbolic link, without blocking on a pipe.

    Raises:
        OSError: the file cannot be read, is not a regular file, or is very large.
    """
    handle = os.open(path, os.O_RDONLY | _BINARY | getattr(os, "O_NONBLOCK", 0))
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if found.st_size > _MOST_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {_MOST_BYTES >> 20} MB")
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)
