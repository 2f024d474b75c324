"""The lock that lets only one run at a time write to a project.

The operating system releases it when a run ends or is killed, so no stale lock can remain.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import ApplyError
from ..text.atomic import discard, sync_folder, write_over
from .journal_entries import journal_error, journal_folder, reason_of

# Writing takes a few milliseconds per file.
TIMEOUT_SECONDS = 20.0
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)
_IN_USE = (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR)
_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EBADF)


@contextlib.contextmanager
def project_lock(root: Path) -> Iterator[None]:
    """Hold the lock of a project, whose journal folder exists meanwhile.

    Raises:
        ApplyError: another run holds the lock for too long, or the folder cannot be created.
    """
    folder = journal_folder(root)
    try:
        _create_folder(folder)
        handle = os.open(folder.parent / "lock", os.O_RDONLY | os.O_CREAT | _NO_LINK, 0o666)
    except OSError as error:
        message = "cannot write the undo journal; no file was changed"
        raise journal_error(folder, message, error) from error
    try:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not _is_acquired(handle):
            if time.monotonic() > deadline:
                raise ApplyError(
                    f"{root}: another run of remat-migrate is writing to this project; no file"
                    " was changed; run again when it is done"
                )
            time.sleep(0.02)
        _hide_from_git(folder.parent)
        for path in folder.glob("*.tmp"):  # left by a killed run
            discard(path)
        yield
    finally:
        # Nothing was written to the handle, so closing it cannot lose anything.
        with contextlib.suppress(OSError):
            os.close(handle)


def _is_acquired(handle: int) -> bool:
    """Try to lock a file. Where the file system has no locks, go without."""
    try:
        import fcntl
    except ImportError:
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _IN_USE:
            return False
        if error.errno not in _UNSUPPORTED:
            raise ApplyError(f"cannot lock the project: {reason_of(error)}") from error
    return True


def _create_folder(folder: Path) -> None:
    for own in (folder.parent, folder):
        if own.is_symlink():  # It could point outside the project.
            raise OSError(errno.ELOOP, f"{own} is a symbolic link")
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        for above in folder.parents[:2]:
            sync_folder(above)


def _hide_from_git(folder: Path) -> None:
    ignore = folder / ".gitignore"
    try:
        if not ignore.exists():
            write_over(ignore, b"*\n")
    except OSError as error:
        raise journal_error(ignore, "cannot be written; no file was changed", error) from error
