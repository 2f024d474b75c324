"""Restoring files from the journal."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import ApplyError
from ..text.folders import open_folder
from ..text.regular_files import write_obstacle
from .journal import JournalEntry, SavedFile, open_journal, reason_of, sha256


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
    restored: Sequence[Path]
    unchanged: Sequence[Path]
    skipped: Mapping[Path, str]


def undo(root: Path, *, force: bool = False, written: JournalEntry | None = None) -> UndoResult:
    """Restore the files of the newest entry and remove the entry from the journal.

    Args:
        root: the project folder.
        force: also restore files that were edited or deleted since the run.
        written: what to restore if there is no journal.

    Raises:
        ApplyError: there is nothing to undo, the journal is damaged or cannot be written, or
            another run is writing.
    """
    with open_journal(root, locked=True) as journal:
        names = journal.names() if journal is not None else []
        if journal is None or not names:
            if written is not None:
                return _restored(written, root, force)
            raise ApplyError(f"nothing to undo in {root}")
        entry = journal.read(names[-1])
        result = _restored(entry, root, force)
        rest = tuple(saved for saved in entry.files if saved.path in result.skipped)
        journal.put(names[-1], replace(entry, files=rest))
    return result


def _restored(entry: JournalEntry, root: Path, force: bool) -> UndoResult:
    restored: list[Path] = []
    unchanged: list[Path] = []
    skipped: dict[Path, str] = {}
    for saved in entry.files:
        discard_temporary(saved.path, root)
        try:
            found = content(saved.path, root)
            if found == saved.old:
                unchanged.append(saved.path)
            elif reason := _reason_to_skip(saved, found, force):
                skipped[saved.path] = reason
            else:
                restore(saved, found, root)
                restored.append(saved.path)
        except OSError as error:
            skipped[saved.path] = f"cannot be restored: {reason_of(error)}"
    return UndoResult(entry.created, restored, unchanged, skipped)


def restore(saved: SavedFile, found: bytes | None, root: Path) -> None:
    """Give a file its old content.

    Args:
        saved: the file.
        found: its current content; None if it does not exist.
        root: the project folder.

    Raises:
        OSError: the file cannot be written, changed meanwhile, or is a link or behind one.
    """
    name, temporary = saved.path.name, temporary_of(saved.path)
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


def temporary_of(path: Path) -> str:
    """Return the temporary file for replacing `path`, short even if the file name is not."""
    return f".remat-{sha256(os.fsencode(path.name))[:16]}.tmp"


def discard_temporary(path: Path, root: Path) -> None:
    """Remove the temporary file of a file, which a killed run may have left."""
    with suppress(OSError), open_folder(path.parent, root) as folder:
        folder.discard(temporary_of(path))


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
