"""Replacing a file atomically: at any moment it is complete, old or new.

Uses plain system calls; `tests/kills.py` kills a run between any two of them and checks the result.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

# The file system does not support an operation, or the user may not perform it.
_CANNOT = frozenset({errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENODATA, errno.ENOTSUP})
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


def write_new(path: Path, data: bytes, like: Path | None = None, mode: int = 0o666) -> None:
    """Create a file and sync it to disk.

    Args:
        path: the file, which must not exist.
        data: its content.
        like: a file to copy mode, owner and extended attributes from, as far as permitted.
        mode: without `like`, the permission bits, less the umask.

    Raises:
        OSError: the file cannot be written; nothing of it is left.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
    handle = os.open(path, flags, mode if like is None else 0o600)
    try:
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(handle, left) :]
            if like is not None:
                _keep_attributes(path, like)
            os.fsync(handle)
        finally:
            os.close(handle)
    except BaseException:
        discard(path)
        raise


def _keep_attributes(path: Path, like: Path) -> None:
    wanted, found = os.stat(like), os.stat(path)
    if os.name == "posix":
        # Changing the owner requires root; changing the group, membership in it.
        if found.st_uid != wanted.st_uid:
            with contextlib.suppress(PermissionError):
                os.chown(path, wanted.st_uid, -1)
        if found.st_gid != wanted.st_gid:
            with contextlib.suppress(PermissionError):
                os.chown(path, -1, wanted.st_gid)
    if hasattr(os, "listxattr"):
        for name in _attributes(like):
            try:
                os.setxattr(path, name, os.getxattr(like, name))
            except OSError as error:
                if error.errno not in _CANNOT:
                    raise
    os.chmod(path, stat.S_IMODE(wanted.st_mode))


def _attributes(path: Path) -> list[str]:
    try:
        return os.listxattr(path)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        return []


def discard(path: Path) -> None:
    """Remove a temporary file if possible; otherwise the next run does."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def write_over(path: Path, data: bytes) -> None:
    """Create or replace a file atomically, following symbolic links.

    Raises:
        OSError: the file cannot be written; it is unchanged.
    """
    import hashlib

    real = Path(os.path.realpath(path))
    name = hashlib.sha256(os.fsencode(real.name)).hexdigest()[:16]
    temporary = real.parent / f".remat-{name}.tmp"
    discard(temporary)  # left by a killed run
    write_new(temporary, data, real if real.exists() else None)
    move_over(temporary, real)


def move_over(new: Path, path: Path) -> None:
    """Replace `path` by a file that `write_new` created in the same folder.

    Raises:
        OSError: the file cannot be replaced; `new` is removed.
    """
    try:
        os.replace(new, path)
    except OSError:
        discard(new)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to disk, where the system supports it.

    Raises:
        OSError: the disk failed.
    """
    if os.name != "posix":
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        # The folder is writable but not readable, or the file system cannot sync folders.
        if error.errno not in _CANNOT:
            raise
