"""Replacing a file so that at any moment it is whole: the old one or the new one."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


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


def write_new(path: Path, data: bytes, like: os.stat_result | None = None) -> None:
    """Write a file that is not there yet, down to the disk, with mode and owner as those of `like`.

    The owner is kept as far as this user may.

    Raises:
        OSError: it cannot be written; what was begun is gone again.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, 0o666 if like is None else 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            if like is not None:
                _keep_owner(path, like)
                os.chmod(path, stat.S_IMODE(like.st_mode))
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _keep_owner(path: Path, like: os.stat_result) -> None:
    if os.name != "posix":
        return
    found = path.stat()
    # Giving a file to another user takes root; a group, membership in it.
    if found.st_uid != like.st_uid:
        with contextlib.suppress(PermissionError):
            os.chown(path, like.st_uid, -1)
    if found.st_gid != like.st_gid:
        with contextlib.suppress(PermissionError):
            os.chown(path, -1, like.st_gid)


def move_over(new: Path, path: Path) -> None:
    """Put a file, written by `write_new` in the same folder, in the place of another.

    Raises:
        OSError: it cannot be put there.
    """
    os.replace(new, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring a folder's entries to the disk, where the system lets one."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
