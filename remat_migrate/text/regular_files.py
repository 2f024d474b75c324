"""Regular files: reading one, and whether it may be replaced."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

# Larger files are not read, unless the settings allow it: a sparse file can have any size.
MAX_BYTES = 64 << 20
# The resolution of times of FAT, the coarsest of file systems in use.
COARSE_NS = 2 * 10**9
# O_NONBLOCK: opening a pipe that replaced the file since discovery must not block.
_READING: int = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


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


def read_regular(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Read a regular file, or one behind a symbolic link, without blocking on a pipe.

    Raises:
        OSError: the file cannot be read, is not a regular file, or has more bytes than `limit`.
    """
    handle = os.open(path, _READING)
    try:
        return read_open(handle, limit)
    finally:
        os.close(handle)


def read_open(handle: int, limit: int) -> bytes:
    """Read an open file without buffered I/O, because a run reads thousands of files.

    Raises:
        OSError: see `read_regular`.
    """
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    size = found.st_size
    data = b"" if size > limit else os.read(handle, size + 1)
    if len(data) != size <= limit:  # it has grown, tells no size, or comes in parts
        with open(handle, "rb", closefd=False) as file:
            data += file.read(limit + 1 - len(data))
    if max(size, len(data)) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit >> 20} MB")
    return data
