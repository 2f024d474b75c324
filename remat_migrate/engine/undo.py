"""Playing the journal back: `undo`, and what a run that was killed left half done."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import ApplyError
from ..text.atomic import discard, read_regular, sync_folder, write_new, write_obstacle
from .journal_entries import (
    JournalEntry,
    SavedFile,
    entry_files,
    exclusive,
    journal_folder,
    load,
    open_files,
    reason_of,
    reopen,
    settle,
    sha256,
    temporary_of,
)


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What `undo` did.

    Attributes:
        created: when the run that was undone wrote its files, in UTC.
        restored: files that have their old bytes again.
        already: files that had them.
        left: files that were left alone, and why; they stay in the journal.
    """

    created: str
    restored: tuple[Path, ...]
    already: tuple[Path, ...]
    left: Mapping[Path, str]


def undo(root: Path, *, force: bool = False) -> UndoResult:
    """Give the files of the newest entry their old bytes, and take the entry off the journal.

    A file that was edited since the run is left alone, and stays in the entry.

    Args:
        root: the project's folder.
        force: restore files that were edited or deleted since, too.

    Raises:
        ApplyError: there is nothing to undo, the journal is damaged or cannot be written, or
            another run is writing.
    """
    nothing = ApplyError(f"there is nothing to undo in {root}")
    if not journal_folder(root).is_dir():
        raise nothing
    with exclusive(root):
        entries = entry_files(root)
        if not entries:
            raise nothing
        entry = load(entries[-1], root)
        reopen(entry, root)
        restored: list[Path] = []
        already: list[Path] = []
        left: dict[Path, str] = {}
        for saved in entry.files:
            discard(temporary_of(saved.path, entry.id))  # of a run that was killed
            try:
                found = _found(saved)
                if found == saved.old:
                    already.append(saved.path)
                elif reason := _reason_to_leave(saved, found, force):
                    left[saved.path] = reason
                else:
                    _restore(saved, found, entry.id)
                    restored.append(saved.path)
            except OSError as error:
                left[saved.path] = f"cannot be restored: {reason_of(error)}"
        settle(replace(entry, files=tuple(f for f in entry.files if f.path in left)), entry, root)
    return UndoResult(entry.created, tuple(restored), tuple(already), left)


def put_back_killed(root: Path) -> tuple[Path, ...]:
    """Put back what a run that was killed has left in the middle of a fix.

    What it had written of whole fixes stays, and `undo` takes it back. Temporary files are removed.
    To be called before the code is looked at: of half a fix nothing might be found.

    Args:
        root: the project's folder.

    Returns:
        The files that were put back.

    Raises:
        ApplyError: a file cannot be put back, or another run is writing.
    """
    if not open_files(root):
        return ()
    with exclusive(root):
        return put_back_under_lock(root)


# -- one file


def _found(saved: SavedFile) -> bytes | None:
    """What a file holds now; None if there is none.

    Raises:
        OSError: it cannot be read, or something else is in its place.
    """
    if os.path.realpath(saved.path) != str(saved.path):
        raise OSError("it is or lies behind a symbolic link now")
    try:
        return read_regular(saved.path)
    except FileNotFoundError:
        return None


def _reason_to_leave(saved: SavedFile, found: bytes | None, force: bool) -> str | None:
    if found is None:
        return None if force else "is gone (--force brings back the old one)"
    if sha256(found) != saved.new_sha256 and not force:
        return "was edited since (--force restores the old one, edits are lost)"
    return write_obstacle(saved.path)


def _restore(saved: SavedFile, found: bytes | None, entry_id: str) -> None:
    """Give a file its old bytes.

    Raises:
        OSError: that cannot be, or it was changed while it was tried.
    """
    temporary = temporary_of(saved.path, entry_id)
    write_new(temporary, saved.old, None if found is None else saved.path)
    try:
        if found is None:
            os.chmod(temporary, saved.mode)
        if _found(saved) != found:
            raise OSError("it was changed just now")
        os.replace(temporary, saved.path)
    except OSError:
        discard(temporary)
        raise
    sync_folder(saved.path.parent)


def put_back_under_lock(root: Path) -> tuple[Path, ...]:
    """As `put_back_killed`, for a run that has the lock."""
    put_back: list[Path] = []
    for file in reversed(open_files(root)):
        entry = load(file, root)
        for saved in entry.files:
            discard(temporary_of(saved.path, entry.id))
        groups: dict[int, list[SavedFile]] = defaultdict(list)
        for saved in entry.files:
            groups[saved.group].append(saved)
        kept: list[SavedFile] = []
        for group in groups.values():
            states = {saved.path: _state(saved) for saved in group}
            if "old" not in states.values():
                kept += group
                continue
            for saved in group:
                if states[saved.path] == "new":
                    _put_back(saved, entry)
                    put_back.append(saved.path)
                elif states[saved.path] == "other":
                    kept.append(saved)  # perhaps it was new before it was edited
        settle(replace(entry, files=tuple(kept)), entry, root)
    return tuple(sorted(put_back))


def _state(saved: SavedFile) -> str:
    try:
        found = _found(saved)
    except OSError:
        return "other"
    if found == saved.old:
        return "old"
    return "new" if found is not None and sha256(found) == saved.new_sha256 else "other"


def _put_back(saved: SavedFile, entry: JournalEntry) -> None:
    try:
        if reason := write_obstacle(saved.path):
            raise OSError(reason)
        _restore(saved, _found(saved), entry.id)
    except OSError as error:
        raise ApplyError(
            f"{saved.path}: a run that was killed left this file with half of a fix, and it cannot"
            f" be put back: {reason_of(error)}; mend that and run again"
        ) from error
