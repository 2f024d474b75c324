"""The entries of the undo journal on disk.

An entry is `.remat_migrate/journal/NUMBER-RANDOM-SIGNATURE.json`. While its files are being written
its name ends with `.open.json`: an open entry found under the project lock is that of a killed run.

A repository can carry a journal, too. Therefore names and contents are signed with a key that only
the user has, outside of the project, and entries that the user's runs did not sign are ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..discovery.roots import repository
from ..errors import ApplyError
from ..text.folders import Folder, open_folder
from ..text.private_folders import open_private, user_folder

FOLDER = ".remat_migrate"
KEPT_ENTRIES = 10
# Signed, so that an entry of another version is none.
_VERSION = "1"
_ENTRY = re.compile(r"(([0-9]{6,}-[0-9a-f]{8})-([0-9a-f]{32}))(\.open)?\.json")
_OPEN = ".open.json"
_KEY = "journal-key"
_KEY_BYTES = 32
# Signs the entries of a run that has no place for a key; nothing can undo it.
_LOST_KEY = os.urandom(_KEY_BYTES)


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
        found = list(filter(None, map(_ENTRY.fullmatch, journal.names())))
    except OSError as error:
        raise journal_error(journal.path, "cannot be listed", error) from error
    key = _key(root_of(journal)) if found else b""
    return sorted(one[0] for one in found if one[3] == _signature(key, one[2]))


def open_entries(names: Sequence[str]) -> list[str]:
    """Return the entries whose run did not finish."""
    return [name for name in names if name.endswith(_OPEN)]


def next_id(journal: Folder) -> str:
    """Return the id of a new entry."""
    entries = entries_in(journal)
    last = int(entries[-1].partition("-")[0]) if entries else 0
    name = f"{last + 1:06}-{os.urandom(4).hex()}"
    return f"{name}-{_signature(_key(root_of(journal)), name)}"


def temporary_of(path: Path, entry_id: str) -> str:
    """Return the temporary file for replacing `path`, short even if the file name is not."""
    return f".remat-{entry_id}-{sha256(os.fsencode(path.name))[:16]}.tmp"


# -- signing


def _key(root: Path) -> bytes:
    """Return the user's key for journals, which is created when it is needed first."""
    place = user_folder("XDG_STATE_HOME", ".local/state", "Library/Application Support")
    if place is not None:
        with open_private(place, outside=repository(root)) as folder:
            if folder is not None:
                key = folder.read(_KEY) or b""
                if len(key) != _KEY_BYTES and folder.write(_KEY, os.urandom(_KEY_BYTES)):
                    key = folder.read(_KEY) or b""
                if len(key) == _KEY_BYTES:
                    return key
    return _LOST_KEY


def _signature(key: bytes, *parts: str) -> str:
    import hmac

    data = "\n".join((_VERSION, *parts)).encode()
    return hmac.digest(key, data, "sha256").hex()[:32]


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

    root = root_of(journal)
    content = {
        "created": entry.created,
        "files": [_to_json(saved, root) for saved in entry.files],
    }
    signature = _signature(_key(root), entry.id, json.dumps(content))
    text = json.dumps({**content, "signature": signature})
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

    path, root = journal.path / name, root_of(journal)
    match = _ENTRY.fullmatch(name)
    assert match is not None
    try:
        content = json.loads(journal.read(name))
        signature = content.pop("signature")
        if signature != _signature(_key(root), match[1], json.dumps(content)):
            raise ValueError("its signature is wrong")
    except OSError as error:
        raise journal_error(path, "cannot read this journal entry", error) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ApplyError(
            f"{path}: this journal entry is damaged ({error}); delete it to continue"
        ) from error
    files = tuple(_from_json(item, root) for item in content["files"])
    return JournalEntry(match[1], content["created"], files)


def _from_json(item: dict[str, Any], root: Path) -> SavedFile:
    import base64
    import zlib

    old = zlib.decompress(base64.b64decode(item["old"]))
    return SavedFile(root / item["path"], old, item["new_sha256"], item["mode"], item["group"])


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
