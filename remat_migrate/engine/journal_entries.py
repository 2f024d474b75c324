"""The entries of the undo journal on disk.

An entry is `.remat_migrate/journal/NUMBER.json`. While its files are being written it is named
`NUMBER.open.json`: an open entry found under the project lock is that of a killed run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..discovery.roots import foreign_part
from ..errors import ApplyError
from ..text.folders import Folder, open_folder

FOLDER = ".remat_migrate"
KEPT_ENTRIES = 10
_VERSION = 1
# A small compressed file can unpack to more than fits into memory.
_MAX_FILE_BYTES = 2**30
_ENTRY = re.compile(r"([0-9]{6,}-[0-9a-f]+)(\.open)?\.json")
_OPEN = ".open.json"


@dataclass(frozen=True, slots=True)
class SavedFile:
    """One file of an entry.

    Attributes:
        path: the real path, with symbolic links resolved.
        old: the content before the run.
        new_sha256: the hash of the content after the run.
        mode: the permission bits before the run.
        group: a number shared by files that must be written or restored together.
    """

    path: Path
    old: bytes
    new_sha256: str
    mode: int
    group: int


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What one run wrote. Ids sort by age; the id is empty if nothing was written."""

    id: str
    created: str
    files: tuple[SavedFile, ...]


# -- listing


def journal_folder(root: Path) -> Path:
    """Return the path of a project's journal folder."""
    return root / FOLDER / "journal"


def open_journal(root: Path, *, create: bool = False) -> AbstractContextManager[Folder]:
    """Open the journal folder of a project.

    Raises:
        OSError: it cannot be opened or created, or is behind a link.
    """
    return open_folder(journal_folder(root), root, create=create)


def entry_files(root: Path) -> list[str]:
    """Return the names of the files of all entries, oldest first.

    Raises:
        ApplyError: the journal folder cannot be listed, or is behind a link.
    """
    try:
        with open_journal(root) as journal:
            return entries_in(journal)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise journal_error(root / FOLDER, "the undo journal cannot be listed", error) from error


def entries_in(journal: Folder) -> list[str]:
    """Return what `entry_files` does, for an open journal.

    Raises:
        ApplyError: the journal folder cannot be listed.
    """
    try:
        return sorted(filter(_ENTRY.fullmatch, journal.names()))
    except OSError as error:
        raise journal_error(journal.path, "cannot be listed", error) from error


def open_entries(names: Sequence[str]) -> list[str]:
    """Return the entries whose run did not finish."""
    return [name for name in names if name.endswith(_OPEN)]


def next_id(journal: Folder) -> str:
    """Return the id of a new entry."""
    entries = entries_in(journal)
    last = int(entries[-1].partition("-")[0]) if entries else 0
    return f"{last + 1:06}-{os.urandom(4).hex()}"


def temporary_of(path: Path, entry_id: str) -> str:
    """Return the temporary file for replacing `path`, short even if the file name is not."""
    return f".remat-{entry_id}-{sha256(os.fsencode(path.name))[:16]}.tmp"


# -- writing


def store(entry: JournalEntry, journal: Folder, consequence: str) -> None:
    """Write an entry, as an open one, so that it survives a power loss.

    Args:
        entry: the entry.
        journal: the journal folder.
        consequence: what a failure means, for the error message.

    Raises:
        ApplyError: the entry cannot be written.
    """
    import json

    text = json.dumps(
        {
            "version": _VERSION,
            "created": entry.created,
            "files": [_to_json(saved, root_of(journal)) for saved in entry.files],
        }
    )
    try:
        temporary = f"{entry.id}.tmp"
        journal.discard(temporary)
        # The old content may be confidential.
        journal.create(temporary, text.encode(), mode=0o600)
        journal.replace(temporary, f"{entry.id}{_OPEN}")
        journal.sync()
    except OSError as error:
        message = f"cannot write the undo journal; {consequence}"
        raise journal_error(journal.path, message, error) from error


def reopen(entry: JournalEntry, journal: Folder) -> None:
    """Mark an entry as open before its files are restored.

    Raises:
        ApplyError: the journal cannot be written.
    """
    _rename(entry, journal, ".json", _OPEN, "cannot write the undo journal; no file was changed")


def settle(rest: JournalEntry, entry: JournalEntry, journal: Folder) -> None:
    """Close an open entry with the files that are left in it, or remove it if none are.

    Also removes the oldest entries.

    Raises:
        ApplyError: the journal cannot be written; the next run settles the entry.
    """
    if not rest.files:
        _remove(f"{entry.id}{_OPEN}", journal)
        return
    if rest.files != entry.files:
        store(rest, journal, "its newest entry lists more files than it should")
    _rename(entry, journal, _OPEN, ".json", "cannot close the journal entry; the next run does")
    for name in entries_in(journal)[:-KEPT_ENTRIES]:
        _remove(name, journal)


def _rename(entry: JournalEntry, journal: Folder, old: str, new: str, failure: str) -> None:
    source, target = f"{entry.id}{old}", f"{entry.id}{new}"
    try:
        if journal.stat(source) or not journal.stat(target):
            journal.rename(source, target)
        journal.sync()
    except OSError as error:
        raise journal_error(journal.path, failure, error) from error


def _remove(name: str, journal: Folder) -> None:
    try:
        with suppress(FileNotFoundError):
            journal.remove(name)
        journal.sync()
    except OSError as error:
        path = journal.path / name
        raise journal_error(path, "cannot be removed from the journal", error) from error


def _to_json(saved: SavedFile, root: Path) -> dict[str, object]:
    import base64
    import zlib

    return {
        # Relative, so that `undo` works in a project that was moved.
        "path": str(saved.path.relative_to(root)),
        "old": base64.b64encode(zlib.compress(saved.old)).decode("ascii"),
        "new_sha256": saved.new_sha256,
        "mode": saved.mode,
        "group": saved.group,
    }


# -- reading


def load(name: str, journal: Folder) -> JournalEntry:
    """Read an entry.

    Raises:
        ApplyError: the file cannot be read or is damaged.
    """
    import json
    import zlib

    path = journal.path / name
    try:
        data = journal.read(name)
    except OSError as error:
        raise journal_error(path, "cannot read this journal entry", error) from error
    try:
        content = json.loads(data)
        if content["version"] != _VERSION:
            raise ApplyError(
                f"{path}: written by another version of remat-migrate; undo with that version"
            )
        files = tuple(_from_json(item, root_of(journal)) for item in content["files"])
        match = _ENTRY.fullmatch(name)
        assert match is not None
        return JournalEntry(match[1], ascii(content["created"]).strip("'"), files)
    except (ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
        raise ApplyError(
            f"{path}: this journal entry is damaged ({error}); delete it to continue"
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
                raise ValueError(f"{name!r} is outside {root}")
            # A forged entry must not plant code that git or an environment runs.
            if part := foreign_part(path, root):
                raise ValueError(f"{name!r} is in {part}, which is not part of the project")
            if mode & ~0o7777 or "\0" in name:
                raise ValueError(f"the mode of {name!r} is invalid")
            unpacking = zlib.decompressobj()
            data = unpacking.decompress(base64.b64decode(old, validate=True), _MAX_FILE_BYTES)
            if not unpacking.eof:
                raise ValueError(f"the content of {name!r} is truncated or too large")
            return SavedFile(path, data, new_sha256, mode & 0o777, group)
    raise ValueError("the data of a file is incomplete")


# -- shared


def root_of(journal: Folder) -> Path:
    """Return the project folder of a journal."""
    return journal.path.parents[1]


def journal_error(path: Path, message: str, error: OSError) -> ApplyError:
    """Return the error that an operation on the journal failed."""
    return ApplyError(f"{path}: {message} ({reason_of(error)})")


def reason_of(error: OSError) -> str:
    """Return the system's error message, without number and file name."""
    return error.strerror or str(error)


def sha256(data: bytes) -> str:
    """Return the hash by which the journal recognizes new content."""
    import hashlib

    return hashlib.sha256(data).hexdigest()
