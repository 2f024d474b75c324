"""Restoring files from the journal: `undo`, and the clean-up after a killed run."""

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
    journal_folder,
    load,
    open_files,
    reason_of,
    reopen,
    settle,
    sha256,
    temporary_of,
)
from .project_lock import project_lock


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What `undo` did.

    Attributes:
        created: when the undone run wrote its files, in UTC.
        restored: files that have their old content again.
        unchanged: files that already had it.
        skipped: files that were left alone, and why. They stay in the journal.
    """

    created: str
    restored: tuple[Path, ...]
    unchanged: tuple[Path, ...]
    skipped: Mapping[Path, str]


def undo(root: Path, *, force: bool = False) -> UndoResult:
    """Restore the files of the newest entry and remove the entry from the journal.

    Args:
        root: the project folder.
        force: also restore files that were edited or deleted since the run.

    Raises:
        ApplyError: there is nothing to undo, the journal is damaged or cannot be written, or
            another run is writing.
    """
    nothing = ApplyError(f"nothing to undo in {root}")
    if not journal_folder(root).is_dir():
        raise nothing
    with project_lock(root):
        entries = entry_files(root)
        if not entries:
            raise nothing
        entry = load(entries[-1], root)
        reopen(entry, root)
        restored: list[Path] = []
        unchanged: list[Path] = []
        skipped: dict[Path, str] = {}
        for saved in entry.files:
            discard(temporary_of(saved.path, entry.id))  # left by a killed run
            try:
                found = _content(saved.path)
                if found == saved.old:
                    unchanged.append(saved.path)
                elif reason := _reason_to_skip(saved, found, force):
                    skipped[saved.path] = reason
                else:
                    restore(saved, found, entry.id)
                    restored.append(saved.path)
            except OSError as error:
                skipped[saved.path] = f"cannot be restored: {reason_of(error)}"
        rest = tuple(saved for saved in entry.files if saved.path in skipped)
        settle(replace(entry, files=rest), entry, root)
    return UndoResult(entry.created, tuple(restored), tuple(unchanged), skipped)


def clean_up_killed_run(root: Path) -> tuple[Path, ...]:
    """Restore files that a killed run left with part of a fix, and return them.

    Complete fixes stay, and `undo` reverts them. Call this before analysing the code, because an
    analysis may find nothing in half a fix.

    Raises:
        ApplyError: a file cannot be restored, or another run is writing.
    """
    if not open_files(root):
        return ()
    with project_lock(root):
        return clean_up_under_lock(root)


def clean_up_under_lock(root: Path) -> tuple[Path, ...]:
    """Do the work of `clean_up_killed_run` for a caller that holds the lock."""
    restored: list[Path] = []
    for file in reversed(open_files(root)):
        entry = load(file, root)
        groups: dict[int, list[SavedFile]] = defaultdict(list)
        for saved in entry.files:
            discard(temporary_of(saved.path, entry.id))
            groups[saved.group].append(saved)
        kept: list[SavedFile] = []
        for group in groups.values():
            states = {saved.path: _state(saved) for saved in group}
            if "old" not in states.values():
                kept += group
                continue
            for saved in group:
                if states[saved.path] == "new":
                    _restore_half_fixed(saved, entry)
                    restored.append(saved.path)
                elif states[saved.path] == "other":
                    kept.append(saved)  # It may have been new before it was edited.
        settle(replace(entry, files=tuple(kept)), entry, root)
    return tuple(sorted(restored))


def restore(saved: SavedFile, found: bytes | None, entry_id: str) -> None:
    """Give a file its old content.

    Args:
        saved: the file.
        found: its current content; None if it does not exist.
        entry_id: the id of its journal entry.

    Raises:
        OSError: the file cannot be written, or changed meanwhile.
    """
    temporary = temporary_of(saved.path, entry_id)
    write_new(temporary, saved.old, None if found is None else saved.path)
    try:
        if found is None:
            os.chmod(temporary, saved.mode)
        if _content(saved.path) != found:
            raise OSError("it was changed just now")
        os.replace(temporary, saved.path)
    except OSError:
        discard(temporary)
        raise
    sync_folder(saved.path.parent)


def _content(path: Path) -> bytes | None:
    """Return a file's content; None if it does not exist.

    Raises:
        OSError: the file cannot be read, or is no longer a regular file.
    """
    if os.path.realpath(path) != str(path):
        raise OSError("it is now a symbolic link, or behind one")
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None


def _reason_to_skip(saved: SavedFile, found: bytes | None, force: bool) -> str | None:
    if found is None:
        return None if force else "was deleted (use --force to restore it)"
    if sha256(found) != saved.new_sha256 and not force:
        return "was edited since the run (use --force to restore it and discard the edits)"
    return write_obstacle(saved.path)


def _state(saved: SavedFile) -> str:
    try:
        found = _content(saved.path)
    except OSError:
        return "other"
    if found == saved.old:
        return "old"
    return "new" if found is not None and sha256(found) == saved.new_sha256 else "other"


def _restore_half_fixed(saved: SavedFile, entry: JournalEntry) -> None:
    try:
        if obstacle := write_obstacle(saved.path):
            raise OSError(obstacle)
        restore(saved, _content(saved.path), entry.id)
    except OSError as error:
        raise ApplyError(
            f"{saved.path}: a killed run left part of a fix in this file, and it cannot be"
            f" restored: {reason_of(error)}; resolve this and run again"
        ) from error
