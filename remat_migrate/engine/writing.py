"""Writing changed files to disk: each atomically, and those that share a fix all or none."""

from __future__ import annotations

import datetime
import stat
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..discovery.roots import foreign_part
from ..errors import ApplyError
from ..text.folders import open_folder
from ..text.regular_files import write_obstacle
from .fix_rounds import FileChange
from .journal import JournalEntry, SavedFile, open_journal, reason_of, sha256
from .undo import content, discard_temporary, restore, temporary_of

_CHANGED = "changed on disk since it was read; run again"
_ALREADY_FIXED = "was already fixed by another run"


class WriteError(ApplyError):
    """Some files were not written. All others were.

    Attributes:
        failures: the files that were not written, and why.
        written: what was written.
        faults: the failures that the system is to blame for, such as a full disk.
        stuck: files that have their new content although the rest of their fix was not written.
    """

    def __init__(self, failures: _Failures, written: JournalEntry) -> None:
        lines = (f"{path} {reason}" for path, reason in sorted(failures.reasons.items()))
        super().__init__("\n  ".join(["not written:", *lines]))
        self.failures: Mapping[Path, str] = failures.reasons
        self.written = written
        self.faults = frozenset(failures.faults)
        self.stuck = frozenset(failures.stuck)


@dataclass(slots=True)
class _Failures:
    """Collects what `WriteError` reports."""

    reasons: dict[Path, str] = field(default_factory=dict)
    faults: set[Path] = field(default_factory=set)
    stuck: set[Path] = field(default_factory=set)

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
        root: the real path of the project folder.
        before: the names of the journal's entries when the code was read. Nothing is written if
            another run has written since, because a fix may depend on files that it does not edit.

    Raises:
        WriteError: a file changed on disk, is not writable, or cannot hold its new text; the others
            are written.
        ApplyError: the journal cannot be written, or another run is writing or has written; no file
            is changed.
    """
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    failures = _Failures()
    tasks: list[_Task] = []
    for change in changes:
        task = _task(change, root)
        if isinstance(task, str):
            failures.reasons[change.path] = task
        else:
            tasks.append(task)
    failures.spread(changes)
    tasks = [task for task in tasks if task.path not in failures.reasons]
    written = JournalEntry(created, tuple(task.saved for task in tasks))
    if tasks:
        with open_journal(root, locked=True) as journal:
            if journal is not None and before is not None and journal.names() != list(before):
                raise ApplyError(
                    f"{root}: another run of remat-migrate wrote to this project since the code"
                    " was read; no file was changed; run again"
                )
            name = journal.add(written) if journal is not None else ""
            _write(tasks, root, failures)
            unchanged = failures.reasons.keys() - failures.stuck
            kept = tuple(saved for saved in written.files if saved.path not in unchanged)
            if journal is not None and kept != written.files:
                with suppress(ApplyError):  # `undo` leaves files alone that are as they were.
                    journal.put(name, replace(written, files=kept))
            written = replace(written, files=kept)
    if failures.reasons:
        raise WriteError(failures, written)
    return written


def _task(change: FileChange, root: Path) -> _Task | str:
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
    return _Task(change, SavedFile(path, old, sha256(new), mode), new)


def _write(tasks: Sequence[_Task], root: Path, failures: _Failures) -> None:
    """Replace files whose old content is in the journal."""
    groups: dict[frozenset[Path], list[_Task]] = defaultdict(list)
    for task in tasks:
        groups[task.change.together].append(task)
    for group in groups.values():
        replaced: list[_Task] = []
        if not _is_written(group, root, failures, replaced):
            failures.spread(task.change for task in group)
            for task in replaced:
                _restore(task, root, failures)
    for path in sorted({task.path.parent for task in tasks}):
        try:
            with open_folder(path, root) as folder:
                folder.sync()
        except OSError as error:
            lost = f"{path}: the changes may be lost in a crash: {reason_of(error)}"
            raise ApplyError(lost) from error


def _is_written(
    group: Sequence[_Task], root: Path, failures: _Failures, replaced: list[_Task]
) -> bool:
    """Write files that share fixes, up to the first failure, and return whether there was none.

    Adds the files that may have been replaced to `replaced`.
    """
    task = group[0]
    try:
        for task in group:
            discard_temporary(task.path, root)
            with open_folder(task.path.parent, root) as folder:
                folder.create(temporary_of(task.path), task.new, like=task.path.name)
        for task in group:
            with open_folder(task.path.parent, root) as folder:
                found = folder.read(task.path.name)
                if found != task.saved.old:
                    failures.reasons[task.path] = _ALREADY_FIXED if found == task.new else _CHANGED
                    return False
                replaced.append(task)
                folder.rename(temporary_of(task.path), task.path.name)
    except OSError as error:
        failures.reasons[task.path] = f"cannot be written: {reason_of(error)}"
        failures.faults.add(task.path)
        return False
    finally:
        for task in group:
            discard_temporary(task.path, root)
    return True


def _restore(task: _Task, root: Path, failures: _Failures) -> None:
    try:
        if content(task.path, root) == task.new:
            restore(task.saved, task.new, root)
    except OSError as error:
        failures.faults.add(task.path)
        failures.stuck.add(task.path)
        failures.reasons[task.path] += (
            f"; it has its new content nevertheless and could not be restored"
            f" ({reason_of(error)}): run remat-migrate undo"
        )
