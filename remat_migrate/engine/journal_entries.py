"""The journal's entries on disk, and who may write: one run at a time.

An entry is `.remat_migrate/journal/NUMBER.json`; while its files are being written it is
`NUMBER.open.json`. Who finds an open one while it has the lock knows that a run was killed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..discovery.roots import foreign_part
from ..errors import ApplyError
from ..text.atomic import discard, move_over, read_regular, sync_folder, write_new, write_over

FOLDER = ".remat_migrate"
KEPT_ENTRIES = 10
# Seconds to wait for another run: writing takes some milliseconds a file.
PATIENCE = 20.0
_VERSION = 1
# Bytes of one file: a few that are packed may be as many as memory cannot hold.
_LARGEST = 2**30
_ENTRY = re.compile(r"([0-9]{6,}-[0-9a-f]+)(\.open)?\.json")
_OPEN = ".open.json"
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class SavedFile:
    """One file of an entry.

    Attributes:
        path: where it really lies, links followed.
        old: its bytes before the run.
        new_sha256: the hash of its bytes after the run.
        mode: its permission bits before the run.
        group: a number that it shares with the files that it shares fixes with.
    """

    path: Path
    old: bytes
    new_sha256: str
    mode: int
    group: int


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What one run wrote. `id` sorts by age and is empty if nothing was written."""

    id: str
    created: str
    files: tuple[SavedFile, ...]


# -- which there are


def journal_folder(root: Path) -> Path:
    """Where a project's journal lies."""
    return root.resolve() / FOLDER / "journal"


def entry_files(root: Path) -> list[Path]:
    """The entries' files, the oldest first.

    Raises:
        ApplyError: the journal's folder cannot be listed.
    """
    folder = journal_folder(root)
    try:
        return sorted(path for path in folder.iterdir() if _ENTRY.fullmatch(path.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _failed(folder, "cannot be listed", error) from error


def open_files(root: Path) -> list[Path]:
    """Those of entries whose run did not come to its end, the oldest first."""
    return [path for path in entry_files(root) if path.name.endswith(_OPEN)]


def next_id(root: Path) -> str:
    """A name for a new entry."""
    entries = entry_files(root)
    last = int(entries[-1].name.partition("-")[0]) if entries else 0
    return f"{last + 1:06}-{os.urandom(4).hex()}"


def temporary_of(path: Path, entry_id: str) -> Path:
    """A name in a file's folder, short where the file's own name is as long as names may be."""
    name = sha256(os.fsencode(path.name))[:16]
    return path.parent / f".remat-{entry_id}-{name}.tmp"


# -- one run at a time


@contextlib.contextmanager
def exclusive(root: Path) -> Iterator[None]:
    """Be the only run that writes in a project. The folder of the journal is there then.

    Raises:
        ApplyError: another run writes, for longer than one waits; the folder cannot be made.
    """
    folder = journal_folder(root)
    try:
        _make_folder(folder)
        handle = os.open(folder.parent / "lock", os.O_RDONLY | os.O_CREAT | _NO_LINK, 0o666)
    except OSError as error:
        what = "the journal for undo cannot be written; no file was changed"
        raise _failed(folder, what, error) from error
    try:
        deadline = time.monotonic() + PATIENCE
        while not _locked(handle):
            if time.monotonic() > deadline:
                raise ApplyError(
                    f"{root}: another run of remat-migrate is writing here; no file was changed;"
                    " run again when it is done"
                )
            time.sleep(0.02)
        _hide(folder.parent)
        # What lies there half written was being written by a run that was killed.
        for path in folder.glob("*.tmp"):
            discard(path)
        yield
    finally:
        # With the handle goes the lock, as it does when a run is killed; nothing was written to it.
        with contextlib.suppress(OSError):
            os.close(handle)


def _locked(handle: int) -> bool:
    """Whether the lock could be had. A file system that knows none is used without."""
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
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
            return False
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EBADF):
            raise ApplyError(f"another run cannot be kept away: {reason_of(error)}") from error
    return True


def _make_folder(folder: Path) -> None:
    for own in (folder.parent, folder):
        if own.is_symlink():  # it would lead out of the project
            raise OSError(errno.ELOOP, f"{own} is a symbolic link")
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        for above in folder.parents[:2]:
            sync_folder(above)


def _hide(folder: Path) -> None:
    """Have git ignore a folder."""
    ignore = folder / ".gitignore"
    try:
        if not ignore.exists():
            write_over(ignore, b"*\n")
    except OSError as error:
        raise _failed(ignore, "cannot be written; no file was changed", error) from error


# -- writing


def store(entry: JournalEntry, root: Path, consequence: str) -> None:
    """Write an entry, as an open one, so that it outlasts a loss of power.

    Args:
        entry: the entry.
        root: the project's folder.
        consequence: what it means if that fails, for the message.

    Raises:
        ApplyError: it cannot be written.
    """
    import json

    folder = journal_folder(root)
    text = json.dumps(
        {
            "version": _VERSION,
            "created": entry.created,
            "files": [_to_json(saved, root.resolve()) for saved in entry.files],
        }
    )
    try:
        temporary = folder / f"{entry.id}.tmp"
        discard(temporary)
        # What it holds may be secret: files that only their owner may read.
        write_new(temporary, text.encode(), mode=0o600)
        move_over(temporary, folder / f"{entry.id}{_OPEN}")
    except OSError as error:
        what = f"the journal for undo cannot be written; {consequence}"
        raise _failed(folder, what, error) from error


def reopen(entry: JournalEntry, root: Path) -> None:
    """Mark that the files of an entry are about to be written.

    Raises:
        ApplyError: that cannot be.
    """
    _move(entry, root, ".json", _OPEN, "the journal cannot be written; no file was changed")


def close(entry: JournalEntry, root: Path) -> None:
    """Mark that the files of an entry are all written, and drop what is oldest.

    Raises:
        ApplyError: that cannot be; the next run of --fix or undo does it.
    """
    _move(entry, root, _OPEN, ".json", "the journal cannot be closed; the next run does it")
    for path in entry_files(root)[:-KEPT_ENTRIES]:
        _remove(path)


def drop(entry: JournalEntry, root: Path) -> None:
    """Take an open entry off the journal.

    Raises:
        ApplyError: that cannot be; it names files that are as it would have them, which does no
            harm.
    """
    _remove(journal_folder(root) / f"{entry.id}{_OPEN}")


def settle(rest: JournalEntry, entry: JournalEntry, root: Path) -> None:
    """Close an open entry with the files that are left in it, or take it off.

    Raises:
        ApplyError: the journal cannot be written; the next run does it.
    """
    if not rest.files:
        drop(entry, root)
        return
    if rest.files != entry.files:
        store(rest, root, "its newest entry names more files than it should")
    close(rest, root)


def _move(entry: JournalEntry, root: Path, old: str, new: str, failure: str) -> None:
    folder = journal_folder(root)
    here, there = folder / f"{entry.id}{old}", folder / f"{entry.id}{new}"
    try:
        if here.exists() or not there.exists():
            os.replace(here, there)
        sync_folder(folder)
    except OSError as error:
        raise _failed(folder, failure, error) from error


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise _failed(path, "cannot be taken off the journal", error) from error


def _to_json(saved: SavedFile, root: Path) -> dict[str, object]:
    import base64
    import zlib

    return {
        # Relative, so that a project that was moved can be undone where it is now.
        "path": str(saved.path.relative_to(root)),
        "old": base64.b64encode(zlib.compress(saved.old)).decode("ascii"),
        "new_sha256": saved.new_sha256,
        "mode": saved.mode,
        "group": saved.group,
    }


# -- reading


def load(path: Path, root: Path) -> JournalEntry:
    """An entry from its file.

    Raises:
        ApplyError: it cannot be read, or is damaged.
    """
    import json
    import zlib

    try:
        data = read_regular(path)
    except OSError as error:
        raise _failed(path, "this entry of the undo journal cannot be read", error) from error
    try:
        content = json.loads(data)
        if content["version"] != _VERSION:
            raise ApplyError(
                f"{path}: written by another version of remat-migrate; use that to undo"
            )
        files = tuple(_from_json(item, root.resolve()) for item in content["files"])
        found = _ENTRY.fullmatch(path.name)
        assert found is not None
        return JournalEntry(found[1], ascii(content["created"]).strip("'"), files)
    except (ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
        raise ApplyError(
            f"{path}: this entry of the undo journal is damaged ({error}); delete it to go on"
        ) from error


def _from_json(item: dict[str, object], root: Path) -> SavedFile:
    import base64
    import zlib

    match item:
        case {
            "path": str(name),
            "old": str(old),
            "new_sha256": str(new_sha256),
            "mode": int(mode),
            "group": int(group),
        }:
            path = Path(os.path.normpath(root / name))
            if path == root or not path.is_relative_to(root):
                raise ValueError(f"it names {name!r}, which lies outside of {root}")
            # Whoever wrote the entry: what git or an environment runs is not brought back from it.
            if part := foreign_part(path, root):
                raise ValueError(f"it names {name!r}, and {part} is no part of the project")
            if mode & ~0o7777 or "\0" in name:
                raise ValueError(f"it gives {name!r} a mode that there is not")
            unpacking = zlib.decompressobj()
            data = unpacking.decompress(base64.b64decode(old, validate=True), _LARGEST)
            if not unpacking.eof:
                raise ValueError(f"what it holds of {name!r} is cut short, or too large")
            return SavedFile(path, data, new_sha256, mode & 0o777, group)
    raise ValueError("it lacks what is to be known of a file")


def _failed(path: Path, what: str, error: OSError) -> ApplyError:
    return ApplyError(f"{path}: {what} ({reason_of(error)})")


def reason_of(error: OSError) -> str:
    """What the system says, without numbers and names."""
    return error.strerror or str(error)


def sha256(data: bytes) -> str:
    """What new bytes are known by."""
    import hashlib

    return hashlib.sha256(data).hexdigest()
