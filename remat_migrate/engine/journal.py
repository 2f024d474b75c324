"""Writing changed files to disk, with a journal that `undo` restores them from.

The journal stores the old content of every file before the first one is replaced. A killed run
therefore leaves each file complete, old or new, and `undo` can tell which. If it left part of a fix
written, the next run restores those files.
"""

from __future__ import annotations

import datetime
import stat
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..discovery.roots import foreign_part
from ..errors import ApplyError
from ..text.folders import Folder, open_folder
from ..text.regular_files import write_obstacle
from .fix_rounds import FileChange
from .journal_entries import (
    JournalEntry,
    SavedFile,
    entries_in,
    next_id,
    reason_of,
    root_of,
    settle,
    sha256,
    store,
    temporary_of,
)
from .project_lock import project_lock
from .undo import clean_up_under_lock, content, discard_temporary, restore

_CHANGED = "changed on disk since it was read; run again"
_ALREADY_FIXED = "was already fixed by another run"


class WriteError(ApplyError):
    """Some files were not written, or only in part. All others were.

    Attributes:
        failures: the files that were not written, and why.
        entry: the journal entry of the files that were written.
        faults: the failures that the system is to blame for, such as a full disk.
        stuck: files that have their new content although the rest of their fix was not written.
        unsettled: errors that leave files written but the journal or disk unsynchronized.
    """

    def __init__(self, failures: _Failures, entry: JournalEntry) -> None:
        lines = (f"{path} {reason}" for path, reason in sorted(failures.reasons.items()))
        super().__init__("\n  ".join(["not written:", *lines, *failures.unsettled]))
        self.failures: Mapping[Path, str] = failures.reasons
        self.entry = entry
        self.faults = frozenset(failures.faults)
        self.stuck = frozenset(failures.stuck)
        self.unsettled = tuple(failures.unsettled)


@dataclass(slots=True)
class _Failures:
    """Collects what `WriteError` reports."""

    reasons: dict[Path, str] = field(default_factory=dict)
    faults: set[Path] = field(default_factory=set)
    stuck: set[Path] = field(default_factory=set)
    unsettled: list[str] = field(default_factory=list)

    def spread(self, changes: Iterable[FileChange]) -> None:
        """Fail the files that share a fix with one that failed."""
        for change in changes:
            failed = sorted(path for path in change.together if path in self.reasons)
            if failed and change.path not in self.reasons:
                self.reasons[change.path] = f"shares a fix with {failed[0]}, which was not written"


@dataclass(frozen=True, slots=True)
class _Task:
    """A file to replace."""

    change: FileChange
    saved: SavedFile
    new: bytes

    @property
    def path(self) -> Path:
        return self.saved.path


def write_changes(
    changes: Sequence[FileChange], root: Path, before: Sequence[str] | None = None
) -> JournalEntry:
    """Replace the changed files, each atomically; files that share a fix all or none.

    Of a hard-linked file only the given name is replaced.

    Args:
        changes: the changes, by real path.
        root: the real path of the project folder, which holds the journal.
        before: the names of the journal's entry files when the code was read. Nothing is written
            if another run has written since, because a fix may depend on files that it does not
            edit.

    Raises:
        WriteError: a file changed on disk, is not writable, or cannot hold its new text; the others
            are written.
        ApplyError: the journal cannot be written, or another run is writing or has written; no file
            is changed.
    """
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    failures = _Failures()
    tasks: list[_Task] = []
    groups: dict[frozenset[Path], int] = {}
    for change in changes:
        group = groups.setdefault(change.together, len(groups))
        task = _task(change, root, group)
        if isinstance(task, str):
            failures.reasons[change.path] = task
        else:
            tasks.append(task)
    failures.spread(changes)
    tasks = [task for task in tasks if task.path not in failures.reasons]
    entry = JournalEntry("", created, ())
    if tasks:
        with project_lock(root) as journal:
            if before is not None and entries_in(journal) != list(before):
                raise ApplyError(
                    f"{root}: another run of remat-migrate wrote to this project since the code"
                    " was read; no file was changed; run again"
                )
            clean_up_under_lock(journal)
            entry = JournalEntry(next_id(journal), created, tuple(task.saved for task in tasks))
            store(entry, journal, "no file was changed")
            entry = _write(entry, tasks, journal, failures)
    if not entry.files:
        entry = replace(entry, id="")
    if failures.reasons or failures.unsettled:
        raise WriteError(failures, entry)
    return entry


def _task(change: FileChange, root: Path, group: int) -> _Task | str:
    """Return how to replace a file, or why it cannot be replaced."""
    path = change.path
    if not path.is_relative_to(root):
        return f"is outside {root}, so undo could not restore it"
    if part := foreign_part(path, root):
        return f"is in {part}, which is not part of the project; run remat-migrate in there"
    try:
        with open_folder(path.parent, root) as folder:
            found, mode = folder.read(path.name), stat.S_IMODE(path.lstat().st_mode)
    except OSError as error:
        return f"cannot be read: {reason_of(error)}"
    if obstacle := write_obstacle(path):
        return obstacle
    try:
        new = change.after.encode(change.after.text)
        old = change.before.encode(change.before.text)
    except UnicodeEncodeError as error:
        return f"cannot hold {error.object[error.start]!r} in its encoding, {change.after.encoding}"
    if found == new:
        return _ALREADY_FIXED
    if found != old:
        if found.decode(change.before.encoding, errors="replace") == change.before.text:
            return f"has bytes that {change.before.encoding} would not write back unchanged"
        return _CHANGED
    return _Task(change, SavedFile(path, old, sha256(new), mode, group), new)


def _write(
    entry: JournalEntry, tasks: Sequence[_Task], journal: Folder, failures: _Failures
) -> JournalEntry:
    """Write the files of a stored entry and return the entry of those that were written."""
    root = root_of(journal)
    groups: dict[int, list[_Task]] = defaultdict(list)
    for task in tasks:
        groups[task.saved.group].append(task)
    failed: set[Path] = set()
    for group in groups.values():
        replaced: list[_Task] = []
        if not _is_written(group, entry.id, root, failures, replaced):
            failures.spread(task.change for task in group)
            failed.update(task.path for task in group)
            for task in replaced:
                _restore(task, entry.id, root, failures)
    for path in sorted({task.path.parent for task in tasks}):
        try:
            with open_folder(path, root) as folder:
                folder.sync()
        except OSError as error:
            failures.unsettled.append(
                f"{path}: the changes may be lost in a crash: {reason_of(error)}"
            )
    written = tuple(f for f in entry.files if f.path not in failed - failures.stuck)
    done = replace(entry, files=written)
    # The entry of a stuck fix stays open, so that the next run restores it.
    if not failures.stuck:
        try:
            settle(done, entry, journal)
        except ApplyError as error:
            failures.unsettled.append(str(error))
    return done


def _is_written(
    group: Sequence[_Task],
    entry_id: str,
    root: Path,
    failures: _Failures,
    replaced: list[_Task],
) -> bool:
    """Write files that share fixes, up to the first failure, and return whether there was none.

    Adds the files that may have been replaced to `replaced`.
    """
    task = group[0]
    try:
        for task in group:
            with open_folder(task.path.parent, root) as folder:
                folder.create(temporary_of(task.path, entry_id), task.new, like=task.path.name)
        for task in group:
            with open_folder(task.path.parent, root) as folder:
                found = folder.read(task.path.name)
                if found != task.saved.old:
                    failures.reasons[task.path] = _ALREADY_FIXED if found == task.new else _CHANGED
                    return False
                replaced.append(task)
                folder.rename(temporary_of(task.path, entry_id), task.path.name)
    except OSError as error:
        failures.reasons[task.path] = f"cannot be written: {reason_of(error)}"
        failures.faults.add(task.path)
        return False
    finally:
        for task in group:
            discard_temporary(task.saved, entry_id, root)
    return True


def _restore(task: _Task, entry_id: str, root: Path, failures: _Failures) -> None:
    try:
        if content(task.path, root) == task.new:
            restore(task.saved, task.new, entry_id, root)
    except OSError as error:
        failures.faults.add(task.path)
        failures.stuck.add(task.path)
        failures.reasons[task.path] += (
            f"; it has its new content nevertheless and could not be restored"
            f" ({reason_of(error)}): run remat-migrate undo"
        )
