"""Restoring files from the journal: `undo`, and the clean-up after a killed run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import ApplyError
from ..text.folders import Folder, open_folder
from ..text.regular_files import write_obstacle
from .journal_entries import (
    JournalEntry,
    SavedFile,
    entries_in,
    entry_files,
    journal_folder,
    load,
    open_entries,
    reason_of,
    reopen,
    root_of,
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
    with project_lock(root) as journal:
        entries = entries_in(journal)
        if not entries and journal.names():
            raise ApplyError(f"{nothing}: its journal has no entry that a run of yours has signed")
        if not entries:
            raise nothing
        entry = load(entries[-1], journal)
        reopen(entry, journal)
        restored: list[Path] = []
        unchanged: list[Path] = []
        skipped: dict[Path, str] = {}
        for saved in entry.files:
            discard_temporary(saved, entry.id, root)
            try:
                found = content(saved.path, root)
                if found == saved.old:
                    unchanged.append(saved.path)
                elif reason := _reason_to_skip(saved, found, force):
                    skipped[saved.path] = reason
                else:
                    restore(saved, found, entry.id, root)
                    restored.append(saved.path)
            except OSError as error:
                skipped[saved.path] = f"cannot be restored: {reason_of(error)}"
        rest = tuple(saved for saved in entry.files if saved.path in skipped)
        settle(replace(entry, files=rest), entry, journal)
    return UndoResult(entry.created, tuple(restored), tuple(unchanged), skipped)


def clean_up_killed_run(root: Path) -> tuple[Path, ...]:
    """Restore files that a killed run left with part of a fix, and return them.

    Complete fixes stay, and `undo` reverts them. Call this before analysing the code, because an
    analysis may find nothing in half a fix.

    Raises:
        ApplyError: a file cannot be restored, or another run is writing.
    """
    if not open_entries(entry_files(root)):
        return ()
    with project_lock(root) as journal:
        return clean_up_under_lock(journal)


def clean_up_under_lock(journal: Folder) -> tuple[Path, ...]:
    """Do the work of `clean_up_killed_run` for a caller that holds the lock."""
    restored: list[Path] = []
    root = root_of(journal)
    for name in reversed(open_entries(entries_in(journal))):
        entry = load(name, journal)
        groups: dict[int, list[SavedFile]] = defaultdict(list)
        for saved in entry.files:
            discard_temporary(saved, entry.id, root)
            groups[saved.group].append(saved)
        kept: list[SavedFile] = []
        for group in groups.values():
            states = {saved.path: _state(saved, root) for saved in group}
            if "old" not in states.values():
                kept += group
                continue
            for saved in group:
                if states[saved.path] == "new":
                    _restore_half_fixed(saved, entry, root)
                    restored.append(saved.path)
                elif states[saved.path] == "other":
                    kept.append(saved)  # It may have been new before it was edited.
        settle(replace(entry, files=tuple(kept)), entry, journal)
    return tuple(sorted(restored))


def restore(saved: SavedFile, found: bytes | None, entry_id: str, root: Path) -> None:
    """Give a file its old content.

    Args:
        saved: the file.
        found: its current content; None if it does not exist.
        entry_id: the id of its journal entry.
        root: the project folder.

    Raises:
        OSError: the file cannot be written, changed meanwhile, or is a link or behind one.
    """
    name, temporary = saved.path.name, temporary_of(saved.path, entry_id)
    with open_folder(saved.path.parent, root) as folder:
        if found is None:
            folder.create(temporary, saved.old, mode=saved.mode)
        else:
            folder.create(temporary, saved.old, like=name)
        try:
            current = None
            with suppress(FileNotFoundError):
                current = folder.read(name)
            if current != found:
                raise OSError("it was changed just now")
            folder.rename(temporary, name)
        except OSError:
            folder.discard(temporary)
            raise
        folder.sync()


def discard_temporary(saved: SavedFile, entry_id: str, root: Path) -> None:
    """Remove the temporary file of a file, if there is one."""
    with suppress(OSError), open_folder(saved.path.parent, root) as folder:
        folder.discard(temporary_of(saved.path, entry_id))


def content(path: Path, root: Path) -> bytes | None:
    """Return a file's content; None if it does not exist.

    Raises:
        OSError: the file cannot be read, is not a regular file, or is behind a link.
    """
    try:
        with open_folder(path.parent, root) as folder:
            return folder.read(path.name)
    except FileNotFoundError:
        return None


def _reason_to_skip(saved: SavedFile, found: bytes | None, force: bool) -> str | None:
    if found is None:
        return None if force else "was deleted (use --force to restore it)"
    if sha256(found) != saved.new_sha256 and not force:
        return "was edited since the run (use --force to restore it and discard the edits)"
    return write_obstacle(saved.path)


def _state(saved: SavedFile, root: Path) -> str:
    try:
        found = content(saved.path, root)
    except OSError:
        return "other"
    if found == saved.old:
        return "old"
    return "new" if found is not None and sha256(found) == saved.new_sha256 else "other"


def _restore_half_fixed(saved: SavedFile, entry: JournalEntry, root: Path) -> None:
    try:
        if obstacle := write_obstacle(saved.path):
            raise OSError(obstacle)
        restore(saved, content(saved.path, root), entry.id, root)
    except OSError as error:
        raise ApplyError(
            f"{saved.path}: a killed run left part of a fix in this file, and it cannot be"
            f" restored: {reason_of(error)}; resolve this and run again"
        ) from error
