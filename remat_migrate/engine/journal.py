"""The journal, from which `undo` restores the files that runs have written.

It is in the user's state folder, where no repository can put entries: `PROJECT-NUMBER.json` holds
the old content of all files that one run was about to replace. So a killed run leaves each file
complete, old or new, and `undo` can tell which.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..discovery.roots import repository
from ..errors import ApplyError
from ..text.folders import Folder
from ..text.private_folders import open_private, user_folder

KEPT_ENTRIES = 10
# Writing takes a few milliseconds per file.
TIMEOUT_SECONDS = 20.0
_IN_USE = (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR)
_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EBADF)


@dataclass(frozen=True, slots=True)
class SavedFile:
    """One file of an entry.

    Attributes:
        path: the real path, with symbolic links resolved.
        old: the content before the run.
        new_sha256: the hash of the content after the run.
        mode: the permission bits before the run.
    """

    path: Path
    old: bytes
    new_sha256: str
    mode: int


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What one run wrote, and when, in UTC."""

    created: str
    files: tuple[SavedFile, ...]


class Journal:
    """The journal of one project."""

    def __init__(self, folder: Folder, root: Path) -> None:
        self._folder, self._root = folder, root
        self._project = sha256(os.fsencode(root))[:16]

    def names(self) -> list[str]:
        """Return the names of the entries, oldest first."""
        own = re.compile(rf"{self._project}-[0-9]{{6,}}\.json")
        return sorted(filter(own.fullmatch, self._folder.names()))

    def add(self, entry: JournalEntry) -> str:
        """Write a new entry, remove old ones, and return its name.

        Raises:
            ApplyError: it cannot be written.
        """
        names = self.names()
        number = int(names[-1].removesuffix(".json").rpartition("-")[2]) + 1 if names else 1
        name = f"{self._project}-{number:06}.json"
        self.put(name, entry)
        for old in names[: -KEPT_ENTRIES + 1]:
            self._folder.discard(old)
        return name

    def put(self, name: str, entry: JournalEntry) -> None:
        """Write an entry so that it survives a power loss, or remove it if it has no files.

        Raises:
            ApplyError: it cannot be written.
        """
        files = [
            {
                "path": str(saved.path.relative_to(self._root)),
                "old": base64.b64encode(zlib.compress(saved.old)).decode("ascii"),
                "new_sha256": saved.new_sha256,
                "mode": saved.mode,
            }
            for saved in entry.files
        ]
        data = json.dumps({"created": entry.created, "files": files}).encode()
        try:
            if files:
                self._folder.discard(f"{name}.tmp")
                # The old content may be confidential.
                self._folder.create(f"{name}.tmp", data, mode=0o600)
                self._folder.replace(f"{name}.tmp", name)
            else:
                self._folder.remove(name)
            self._folder.sync()
        except OSError as error:
            raise ApplyError(
                f"{self._path(name)}: cannot be written ({reason_of(error)})"
            ) from error

    def read(self, name: str) -> JournalEntry:
        """Read an entry.

        Raises:
            ApplyError: it cannot be read, or is damaged.
        """
        try:
            content = json.loads(self._folder.read(name))
            files = tuple(
                SavedFile(
                    self._root / item["path"],
                    zlib.decompress(base64.b64decode(item["old"])),
                    item["new_sha256"],
                    item["mode"],
                )
                for item in content["files"]
            )
            return JournalEntry(content["created"], files)
        except OSError as error:
            raise ApplyError(f"{self._path(name)}: cannot be read ({reason_of(error)})") from error
        except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
            raise ApplyError(
                f"{self._path(name)}: this journal entry is damaged ({error}); delete it"
            ) from error

    def _path(self, name: str) -> Path:
        return self._folder.path / name

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let only one run at a time write to the project.

        The operating system releases the lock when a run ends or is killed.

        Raises:
            ApplyError: another run holds the lock for too long, or there can be no lock.
        """
        name = f"{self._project}.lock"
        try:
            handle = self._folder.open(name, os.O_RDONLY | os.O_CREAT)
        except OSError as error:
            raise ApplyError(f"{self._path(name)}: no file was changed: {error}") from error
        try:
            deadline = time.monotonic() + TIMEOUT_SECONDS
            while not _is_acquired(handle):
                if time.monotonic() > deadline:
                    raise ApplyError(
                        f"{self._root}: another run of remat-migrate is writing to this project; no"
                        " file was changed; run again when it is done"
                    )
                time.sleep(0.02)
            yield
        finally:
            with suppress(OSError):
                os.close(handle)


@contextmanager
def open_journal(root: Path) -> Iterator[Journal | None]:
    """Open and lock the journal of a project; None if the user has no safe state folder outside it.

    Raises:
        ApplyError: it cannot be locked.
    """
    place = user_folder("XDG_STATE_HOME", ".local/state", "Library/Application Support")
    with ExitStack() as opened:
        journal = None
        if place is not None:
            private = opened.enter_context(open_private(place, outside=repository(root)))
            if private is not None:
                journal = Journal(private.folder, root)
                opened.enter_context(journal.locked())
        yield journal


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


def reason_of(error: OSError) -> str:
    """Return the system's error message, without number and file name."""
    return error.strerror or str(error)


def sha256(data: bytes) -> str:
    """Return the hash by which the journal recognizes new content."""
    import hashlib

    return hashlib.sha256(data).hexdigest()
