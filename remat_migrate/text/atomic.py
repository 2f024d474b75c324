"""Replacing a file so that at any moment it is whole: the old one or the new one.

All is done by calls of the system, one by one: what a run that is killed between two of them leaves
behind is tested for every such place (`tests/kills.py`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

# What a file system answers that does not know an operation, or a user who may not do it.
_CANNOT = frozenset({errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENODATA, errno.ENOTSUP})
_BINARY: int = getattr(os, "O_BINARY", 0)


def write_obstacle(path: Path) -> str | None:
    """Why a file must not be written; None if it may be.

    Replacing a file needs no leave to write *it*, only its folder, and root may do anything: both
    would pass by what `chmod -w` is meant to protect. So the file's own mode is asked.
    """
    try:
        found = path.stat()
    except OSError as error:
        return f"cannot be reached: {error.strerror or error}"
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    if not found.st_mode & 0o222:
        return "is read-only; allow writing it (chmod +w) to have it fixed"
    if not os.access(path, os.W_OK):
        return "may not be written by this user"
    if not os.access(path.resolve().parent, os.W_OK | os.X_OK):
        return "lies in a folder that may not be written by this user"
    return None


def read_regular(path: Path, *, linked: bool = False) -> bytes:
    """The bytes of a regular file.

    A file that something else has taken the place of is not followed, if it is a link, and not
    waited for, if it is a pipe.

    Args:
        path: the file.
        linked: whether it may be a link to one.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    flags = os.O_RDONLY | _BINARY | getattr(os, "O_NONBLOCK", 0)
    if not linked:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP and not linked:
            raise OSError(errno.ELOOP, "it is a symbolic link now") from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def write_new(path: Path, data: bytes, like: Path | None = None, mode: int = 0o666) -> None:
    """Write a file that is not there yet, down to the disk.

    Args:
        path: the file.
        data: its bytes.
        like: a file that it gets the mode, the owner and further attributes of, access lists among
            them, as far as this user may give them.
        mode: without `like`, its permission bits, less the process's mask.

    Raises:
        OSError: it cannot be written; what was begun is gone again.
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
        # Giving a file to another user takes root; a group, membership in it.
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
    """Remove a temporary file, if it is there and can be removed.

    One that cannot does no harm to any other file, and the next run removes it.
    """
    with contextlib.suppress(OSError):
        os.unlink(path)


def write_over(path: Path, data: bytes) -> None:
    """Write a file whole, in the place of one that there may be; a link stays one.

    Raises:
        OSError: it cannot be written; the file is as it was.
    """
    import hashlib

    real = Path(os.path.realpath(path))
    name = hashlib.sha256(os.fsencode(real.name)).hexdigest()[:16]
    temporary = real.parent / f".remat-{name}.tmp"
    discard(temporary)  # of a run that was killed
    write_new(temporary, data, real if real.exists() else None)
    move_over(temporary, real)


def move_over(new: Path, path: Path) -> None:
    """Put a file, written by `write_new` in the same folder, in the place of another.

    Raises:
        OSError: it cannot be put there; it is gone again.
    """
    try:
        os.replace(new, path)
    except OSError:
        discard(new)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring a folder's entries to the disk, where the system lets one.

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
        # A folder that one may write but not list; a file system without such a thing.
        if error.errno not in _CANNOT:
            raise
