"""Restoring files from the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    with open_journal(root) as journal:
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
        try:
            with open_folder(saved.path.parent, root) as folder:
                name = saved.path.name
                folder.discard_temporary(name)
                found = None if folder.stat(name) is None else folder.read(name)
                if found == saved.old:
                    unchanged.append(saved.path)
                elif reason := _reason_to_skip(saved, found, force):
                    skipped[saved.path] = reason
                else:
                    folder.change(name, found, saved.old, saved.mode)
                    restored.append(saved.path)
        except OSError as error:
            skipped[saved.path] = f"cannot be restored: {reason_of(error)}"
    return UndoResult(entry.created, restored, unchanged, skipped)


def _reason_to_skip(saved: SavedFile, found: bytes | None, force: bool) -> str | None:
    if found is None:
        return None if force else "was deleted (use --force to restore it)"
    if sha256(found) != saved.new_sha256 and not force:
        return "was edited since the run (use --force to restore it and discard the edits)"
    return write_obstacle(saved.path)
