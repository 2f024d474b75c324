"""Writing changed files to disk: each atomically, and all of a run or none."""

from __future__ import annotations

import datetime
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ..discovery.roots import foreign_part
from ..errors import ApplyError
from ..text.folders import CHANGED, open_folder
from ..text.regular_files import write_obstacle
from .fix_rounds import FileChange
from .journal import JournalEntry, SavedFile, open_journal, reason_of, sha256

# What is saved of a file, and its new content.
_Task = tuple[SavedFile, bytes]


def write_changes(changes: Sequence[FileChange], root: Path) -> JournalEntry:
    """Replace the changed files, each atomically, and return what was written.

    If a file cannot be replaced, those that already were are restored. Of a hard-linked file only
    the given name is replaced.

    Args:
        changes: the changes, by real path.
        root: the real path of the project folder.

    Raises:
        ApplyError: a file changed on disk, is not writable, or cannot hold its new text; the
            journal cannot be written; another run is writing. No file is changed, or the message
            says which one is.
    """
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    tasks = [_task(change, root) for change in changes]
    entry = JournalEntry(created, tuple(saved for saved, _ in tasks))
    with open_journal(root) as journal:
        name = journal.add(entry) if journal is not None else ""
        try:
            for saved, new in tasks:
                with open_folder(saved.path.parent, root) as folder:
                    folder.change(saved.path.name, saved.old, new, saved.mode)
        except OSError as error:
            stuck = _not_restored(tasks, root)
            if journal is not None:
                with suppress(ApplyError):  # `undo` leaves files alone that are as they were.
                    journal.put(name, replace(entry, files=tuple(stuck)))
            reason = f"{saved.path} cannot be written: {reason_of(error)}"
            raise _unchanged(reason, stuck) from error
    return entry


def _task(change: FileChange, root: Path) -> _Task:
    """Return how to replace a file.

    Raises:
        ApplyError: it cannot be replaced.
    """
    path, encoding = change.path, change.before.encoding
    if not path.is_relative_to(root):
        raise _unchanged(f"{path} is outside {root}, so undo could not restore it")
    if part := foreign_part(path, root):
        raise _unchanged(
            f"{path} is in {part}, which is not part of the project; run remat-migrate in there"
        )
    try:
        with open_folder(path.parent, root) as folder:
            found, mode = folder.read(path.name), stat.S_IMODE(path.lstat().st_mode)
    except OSError as error:
        raise _unchanged(f"{path} cannot be read: {reason_of(error)}") from error
    if obstacle := write_obstacle(path):
        raise _unchanged(f"{path} {obstacle}")
    try:
        new, old = change.after.data, change.before.data
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        raise _unchanged(f"{path} cannot hold {bad!r} in its encoding, {encoding}") from error
    if found != old:
        if found.decode(encoding, errors="replace") != change.before.text:
            raise _unchanged(f"{path} {CHANGED}")
        raise _unchanged(f"{path} has bytes that {encoding} would not write back unchanged")
    return SavedFile(path, old, sha256(new), mode), new


def _unchanged(reason: str, stuck: Sequence[SavedFile] = ()) -> ApplyError:
    """Return an error that says which files keep their new content."""
    if not stuck:
        return ApplyError(f"{reason}; no file was changed")
    paths = ", ".join(str(saved.path) for saved in stuck)
    return ApplyError(
        f"{reason}; {paths} has its new content and could not be restored: run remat-migrate undo"
    )


def _not_restored(tasks: Sequence[_Task], root: Path) -> list[SavedFile]:
    """Restore the files that were replaced, and return those that keep their new content."""
    stuck = []
    for saved, new in tasks:
        name = saved.path.name
        try:
            with open_folder(saved.path.parent, root) as folder:
                if folder.read(name) == new:
                    folder.change(name, new, saved.old, saved.mode)
        except OSError:
            stuck.append(saved)
    return stuck
