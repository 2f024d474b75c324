"""The lock that lets only one run at a time write to a project.

The operating system releases it when a run ends or is killed, so no stale lock can remain.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..errors import ApplyError
from ..text.folders import Folder, open_folder
from .journal_entries import FOLDER, journal_error, open_journal, reason_of

# Writing takes a few milliseconds per file.
TIMEOUT_SECONDS = 20.0
_IN_USE = (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR)
_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EBADF)


@contextmanager
def project_lock(root: Path) -> Iterator[Folder]:
    """Hold the lock of a project, and yield its journal folder.

    Raises:
        ApplyError: another run holds the lock for too long, or the journal cannot be opened.
    """
    with ExitStack() as opened:
        try:
            folder = opened.enter_context(open_folder(root / FOLDER, root, create=True))
            handle = folder.open("lock", os.O_RDONLY | os.O_CREAT)
            opened.callback(_close, handle)
            journal = opened.enter_context(open_journal(root, create=True))
        except OSError as error:
            message = "cannot write the undo journal; no file was changed"
            raise journal_error(root / FOLDER, message, error) from error
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not _is_acquired(handle):
            if time.monotonic() > deadline:
                raise ApplyError(
                    f"{root}: another run of remat-migrate is writing to this project; no file"
                    " was changed; run again when it is done"
                )
            time.sleep(0.02)
        _hide_from_git(folder)
        for place in (folder, journal):
            with suppress(OSError):
                for name in place.names():
                    if name.endswith(".tmp"):  # left by a killed run
                        place.discard(name)
        yield journal


def _close(handle: int) -> None:
    # Nothing was written to the handle, so closing it cannot lose anything.
    with suppress(OSError):
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


def _hide_from_git(folder: Folder) -> None:
    name = ".gitignore"
    try:
        try:
            _close(folder.open(name))
        except FileNotFoundError:
            folder.write(name, b"*\n")
    except OSError as error:
        path = folder.path / name
        raise journal_error(path, "cannot be written; no file was changed", error) from error
