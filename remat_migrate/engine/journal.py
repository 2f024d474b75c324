"""Writing changed files to disk, with a journal that `undo` plays back.

Before the first file is replaced the journal holds the old bytes of all of them and what the new
ones will be. A run that is killed leaves every file whole, old or new, and `undo` knows which. What
it left in the middle of a fix, some of its files new and some old, the next run puts back.
"""

from __future__ import annotations

import datetime
import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..discovery.roots import foreign_part
from ..errors import ApplyError
from ..text.atomic import discard, read_regular, sync_folder, write_new, write_obstacle
from .apply import Change
from .journal_entries import (
    JournalEntry,
    SavedFile,
    entry_files,
    exclusive,
    next_id,
    reason_of,
    settle,
    sha256,
    store,
    temporary_of,
)
from .undo import put_back_under_lock

_CHANGED = "was changed on disk since it was read; run again"
_DONE = "has its fixes already: another run was quicker"


class WriteError(ApplyError):
    """Some files were not written, or not as they should be. The others were.

    Attributes:
        failures: the files that are as they were, and why.
        entry: the journal's entry of those that were written.
        faults: those of the failures that the system is to blame for: a full disk, say.
        stuck: those of them that have their new text all the same, with half a fix.
        unsettled: what could not be brought to its end though the files were written.
    """

    def __init__(
        self,
        failures: _Failures,
        entry: JournalEntry,
    ) -> None:
        lines = (f"{path} {reason}" for path, reason in sorted(failures.reasons.items()))
        super().__init__("\n  ".join(["not written:", *lines, *failures.unsettled]))
        self.failures: Mapping[Path, str] = failures.reasons
        self.entry = entry
        self.faults = frozenset(failures.faults)
        self.stuck = frozenset(failures.stuck)
        self.unsettled = tuple(failures.unsettled)


@dataclass(frozen=True, slots=True)
class _Task:
    """One file to replace."""

    change: Change
    old: bytes
    new: bytes
    temporary: Path
    saved: SavedFile

    @property
    def path(self) -> Path:
        return self.change.path


@dataclass(slots=True)
class _Failures:
    """What is not written, and why."""

    reasons: dict[Path, str] = field(default_factory=dict)
    faults: set[Path] = field(default_factory=set)
    stuck: set[Path] = field(default_factory=set)
    unsettled: list[str] = field(default_factory=list)

    def by_system(self, path: Path, error: OSError) -> None:
        self.reasons[path] = f"cannot be written: {reason_of(error)}"
        self.faults.add(path)

    def spread(self, changes: Iterable[Change]) -> None:
        """Let the files that share a fix with one that cannot be written fail with it."""
        for change in changes:
            lost = sorted(path for path in change.together if path in self.reasons)
            if lost and change.path not in self.reasons:
                self.reasons[change.path] = f"shares a fix with {lost[0]}, which is not written"


def write_changes(
    changes: Sequence[Change], root: Path, before: Sequence[Path] | None = None
) -> JournalEntry:
    """Replace the files that changed, each atomically, files that share a fix all or none.

    Of a hard link only this name is replaced.

    Args:
        changes: the files before and after, by the paths where they really lie.
        root: the project's folder, which holds the journal.
        before: the files of the journal's entries when the code was looked at. A fix depends on
            files that it does not edit, too: where another run has written since, none is made.

    Raises:
        WriteError: a file was changed on disk since it was read, may not be written, or cannot hold
            its new text; the other files are written.
        ApplyError: the journal cannot be written, or another run is writing or wrote since; no
            file is.
    """
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    failures = _Failures()
    planned: list[tuple[Change, bytes, bytes, int]] = []
    for change in changes:
        plan = _plan(change, root.resolve())
        if isinstance(plan, str):
            failures.reasons[change.path] = plan
        else:
            planned.append((change, *plan))
    failures.spread(changes)
    planned = [plan for plan in planned if plan[0].path not in failures.reasons]
    entry = JournalEntry("", created, ())
    if planned:
        with exclusive(root):
            if before is not None and entry_files(root) != list(before):
                raise ApplyError(
                    f"{root}: another run of remat-migrate wrote here since the code was read;"
                    " no file was changed; run again"
                )
            put_back_under_lock(root)
            entry, tasks = _entered(planned, JournalEntry(next_id(root), created, ()))
            store(entry, root, "no file was changed")
            entry = _write(entry, tasks, root, failures)
    if not entry.files:
        entry = replace(entry, id="")
    if failures.reasons or failures.unsettled:
        raise WriteError(failures, entry)
    return entry


# -- writing


def _plan(change: Change, root: Path) -> tuple[bytes, bytes, int] | str:
    """Old bytes, new bytes and permission bits for a change, or why it cannot be."""
    path = change.path
    if os.path.realpath(path) != str(path):
        return "is or lies behind a symbolic link since it was read; run again"
    if not path.is_relative_to(root):
        return f"lies outside of {root}, whose journal could not bring it back"
    if part := foreign_part(path, root):
        return f"is in {part}, which is no part of the project: run remat-migrate in there"
    if reason := write_obstacle(path):
        return reason
    try:
        found, mode = read_regular(path), stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        return f"cannot be read: {reason_of(error)}"
    try:
        new = change.after.encode(change.after.text)
        old = change.before.encode(change.before.text)
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        return f"cannot hold {bad!r}: its encoding is {change.after.encoding}"
    if found == new:
        return _DONE
    if found != old:
        if found.decode(change.before.encoding, errors="replace") == change.before.text:
            return f"has characters that {change.before.encoding} would write as other bytes"
        return _CHANGED
    return old, new, mode


def _entered(
    planned: Sequence[tuple[Change, bytes, bytes, int]], entry: JournalEntry
) -> tuple[JournalEntry, list[_Task]]:
    """The entry with the files that are to be written, and the writing of each."""
    numbers: dict[frozenset[Path], int] = {}
    tasks = []
    for change, old, new, mode in planned:
        group = numbers.setdefault(change.together, len(numbers))
        saved = SavedFile(change.path, old, sha256(new), mode, group)
        tasks.append(_Task(change, old, new, temporary_of(change.path, entry.id), saved))
    return replace(entry, files=tuple(task.saved for task in tasks)), tasks


def _write(
    entry: JournalEntry,
    tasks: Sequence[_Task],
    root: Path,
    failures: _Failures,
) -> JournalEntry:
    """Write the files of an entry that is stored. Returns the entry of those that were written."""
    groups: dict[int, list[_Task]] = defaultdict(list)
    for task in tasks:
        groups[task.saved.group].append(task)
    failed: set[Path] = set()
    for group in groups.values():
        begun: list[_Task] = []
        if not _is_written(group, failures, begun):
            failures.spread(task.change for task in group)
            failed.update(task.path for task in group)
            for task in begun:
                _put_back(task, failures)
    for folder in sorted({task.path.parent for task in tasks}):
        try:
            sync_folder(folder)
        except OSError as error:
            failures.unsettled.append(
                f"{folder}: what was written may not outlast a crash: {reason_of(error)}"
            )
    done = replace(
        entry, files=tuple(f for f in entry.files if f.path not in failed - failures.stuck)
    )
    # A fix that is stuck half made keeps its entry open: then the next run puts it back.
    if not failures.stuck:
        try:
            settle(done, entry, root)
        except ApplyError as error:
            failures.unsettled.append(str(error))
    return done


def _is_written(group: Sequence[_Task], failures: _Failures, begun: list[_Task]) -> bool:
    """Whether files that share fixes could all be written; it stops at the first that cannot.

    Those that may have been replaced are added to `begun`.
    """
    task = group[0]
    try:
        for task in group:
            write_new(task.temporary, task.new, task.path)
        for task in group:
            found = read_regular(task.path)
            if found != task.old:
                failures.reasons[task.path] = _DONE if found == task.new else _CHANGED
                return False
            begun.append(task)
            os.replace(task.temporary, task.path)
    except OSError as error:
        failures.by_system(task.path, error)
        return False
    finally:
        for task in group:
            discard(task.temporary)
    return True


def _put_back(task: _Task, failures: _Failures) -> None:
    try:
        if read_regular(task.path) == task.new:
            write_new(task.temporary, task.old, task.path)
            os.replace(task.temporary, task.path)
    except FileNotFoundError:
        return
    except OSError as error:
        discard(task.temporary)
        failures.faults.add(task.path)
        failures.stuck.add(task.path)
        failures.reasons[task.path] += (
            f"; it has its new text all the same and could not be put back"
            f" ({reason_of(error)}): remat-migrate undo does it"
        )
