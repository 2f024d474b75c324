"""Writing changed files to disk, with a journal that `undo` plays back.

Before the first file is replaced the journal holds the old bytes of all of them and what the new
ones will be. A run that is killed leaves every file whole, old or new, and `undo` knows which.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import os
import re
import secrets
import stat
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .apply import Change
from .atomic import move_over, sync_folder, write_new, write_obstacle
from .errors import ApplyError

FOLDER = ".remat_migrate"
KEPT_ENTRIES = 10
_VERSION = 1
_CHANGED = "was changed on disk since it was read; run again"
_ENTRY = re.compile(r"[0-9]{6,}-[0-9a-f]+\.json")


@dataclass(frozen=True, slots=True)
class SavedFile:
    """One file of an entry.

    Attributes:
        path: where it really lies, links followed.
        old: its bytes before the run.
        new_sha256: the hash of its bytes after the run.
        mode: its permission bits before the run.
    """

    path: Path
    old: bytes
    new_sha256: str
    mode: int


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What one run wrote. `id` sorts by age and is empty if nothing was written."""

    id: str
    created: str
    files: tuple[SavedFile, ...]


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


class WriteError(ApplyError):
    """Some files were not written. The others were.

    Attributes:
        failures: the files that are as they were, and why.
        entry: the journal's entry of those that were written.
    """

    def __init__(self, failures: Mapping[Path, str], entry: JournalEntry) -> None:
        lines = (f"{path} {reason}" for path, reason in sorted(failures.items()))
        super().__init__("not written:\n  " + "\n  ".join(lines))
        self.failures = failures
        self.entry = entry


@dataclass(frozen=True, slots=True)
class _Task:
    """One file to replace."""

    change: Change
    real: Path
    old: bytes
    new: bytes
    temporary: Path
    like: os.stat_result


def write_changes(changes: Sequence[Change], root: Path) -> JournalEntry:
    """Replace the files that changed, each atomically, files that share a fix all or none.

    Of a symbolic link the file it points to is replaced. Of a hard link only this name is.

    Args:
        changes: the files before and after.
        root: the project's folder, which holds the journal.

    Raises:
        WriteError: a file was changed on disk since it was read, may not be written, or cannot hold
            its new text; the other files are written.
        ApplyError: the journal cannot be written; no file is.
    """
    entry_id = _next_id(root)
    failures: dict[Path, str] = {}
    tasks: list[_Task] = []
    for change in changes:
        task = _plan(change, entry_id)
        if isinstance(task, str):
            failures[change.path] = task
        else:
            tasks.append(task)
    tasks = _without_aliases(tasks, failures)
    _spread(changes, failures)
    tasks = [task for task in tasks if task.change.path not in failures]
    saved = tuple(
        SavedFile(task.real, task.old, _sha256(task.new), stat.S_IMODE(task.like.st_mode))
        for task in tasks
    )
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    entry = JournalEntry(entry_id, created, saved)
    if tasks:
        _store(entry, root, "no file was changed")
    failed = {task.real for group in _groups(tasks) for task in _write_group(group, failures)}
    if failed:
        entry = replace(entry, files=tuple(f for f in saved if f.path not in failed))
        _store_rest(entry, root)
    if not entry.files:
        entry = replace(entry, id="")
    if failures:
        raise WriteError(failures, entry)
    return entry


def undo(root: Path, *, force: bool = False) -> UndoResult:
    """Give the files of the newest entry their old bytes, and take the entry off the journal.

    A file that was edited since the run is left alone, and stays in the entry.

    Args:
        root: the project's folder.
        force: restore files that were edited or deleted since, too.

    Raises:
        ApplyError: there is nothing to undo, or the journal is damaged.
    """
    entries = _entries(root)
    if not entries:
        raise ApplyError(f"there is nothing to undo in {root}")
    entry = _load(entries[-1], root)
    restored: list[Path] = []
    already: list[Path] = []
    left: dict[Path, str] = {}
    for saved in entry.files:
        temporary = _temporary(saved.path, entry.id)
        try:
            temporary.unlink(missing_ok=True)  # of a run that was killed
            found = saved.path.read_bytes() if saved.path.exists() else None
            if found == saved.old:
                already.append(saved.path)
            elif reason := _reason_to_leave(saved, found, force):
                left[saved.path] = reason
            else:
                _restore(saved, temporary)
                restored.append(saved.path)
        except OSError as error:
            left[saved.path] = f"cannot be restored: {error.strerror or error}"
    _store_rest(replace(entry, files=tuple(f for f in entry.files if f.path in left)), root)
    return UndoResult(entry.created, tuple(restored), tuple(already), left)


# -- writing


def _temporary(real: Path, entry_id: str) -> Path:
    """A name in a file's folder, short where the file's own name is as long as names may be."""
    name = hashlib.sha256(os.fsencode(real.name)).hexdigest()[:16]
    return real.parent / f".remat-{entry_id}-{name}.tmp"


def _plan(change: Change, entry_id: str) -> _Task | str:
    """What to write for a change, or why it cannot be."""
    if reason := write_obstacle(change.path):
        return reason
    try:
        real = change.path.resolve(strict=True)
        like = real.stat()
        found = real.read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    try:
        new = change.after.encode(change.after.text)
        old = change.before.encode(change.before.text)
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        return f"cannot hold {bad!r}: its encoding is {change.after.encoding}"
    if found != old:
        if found.decode(change.before.encoding, errors="replace") == change.before.text:
            return f"has characters that {change.before.encoding} would write as other bytes"
        return _CHANGED
    return _Task(change, real, old, new, _temporary(real, entry_id), like)


def _without_aliases(tasks: list[_Task], failures: dict[Path, str]) -> list[_Task]:
    """One task for each file, where links give it several names."""
    first: dict[Path, _Task] = {}
    for task in tasks:
        other = first.setdefault(task.real, task)
        if other.new != task.new:
            names = (other.change.path, task.change.path)
            failures |= dict.fromkeys(names, f"is one file under two names, {names[0]}, {names[1]}")
    return list(first.values())


def _spread(changes: Sequence[Change], failures: dict[Path, str]) -> None:
    """Let the files that share a fix with one that cannot be written fail with it."""
    for change in changes:
        lost = sorted(path for path in change.together if path in failures)
        if lost and change.path not in failures:
            failures[change.path] = f"shares a fix with {lost[0]}, which is not written"


def _groups(tasks: Sequence[_Task]) -> list[list[_Task]]:
    groups: dict[frozenset[Path], list[_Task]] = defaultdict(list)
    for task in tasks:
        groups[task.change.together].append(task)
    return list(groups.values())


def _write_group(group: list[_Task], failures: dict[Path, str]) -> list[_Task]:
    """Write files that share fixes. Returns those that were not written: all or none."""
    staged: list[_Task] = []
    task = group[0]
    try:
        for task in group:
            write_new(task.temporary, task.new, task.like)
            staged.append(task)
        for task in group:
            if task.real.read_bytes() != task.old:
                failures[task.change.path] = _CHANGED
                break
            move_over(task.temporary, task.real)
        else:
            return []
    except OSError as error:
        failures[task.change.path] = f"cannot be written: {error.strerror or error}"
    finally:
        for task in staged:
            task.temporary.unlink(missing_ok=True)
    _spread([task.change for task in group], failures)
    return [task for task in group if _is_put_back(task, failures)]


def _is_put_back(task: _Task, failures: dict[Path, str]) -> bool:
    try:
        if task.real.read_bytes() != task.new:
            return True
        write_new(task.temporary, task.old, task.like)
        move_over(task.temporary, task.real)
    except OSError as error:
        failures[task.change.path] += (
            f"; it has its new text all the same and could not be put back"
            f" ({error.strerror or error}): remat-migrate undo does it"
        )
        return False
    return True


# -- undoing


def _reason_to_leave(saved: SavedFile, found: bytes | None, force: bool) -> str | None:
    if found is None:
        return None if force else "is gone (--force brings back the old one)"
    if _sha256(found) != saved.new_sha256 and not force:
        return "was edited since (--force restores the old one, edits are lost)"
    return write_obstacle(saved.path)


def _restore(saved: SavedFile, temporary: Path) -> None:
    if saved.path.exists():
        real = saved.path.resolve(strict=True)
        temporary = real.parent / temporary.name
        write_new(temporary, saved.old, real.stat())
        move_over(temporary, real)
    else:
        write_new(temporary, saved.old)
        temporary.chmod(saved.mode)
        move_over(temporary, saved.path)


# -- the journal


def _folder(root: Path) -> Path:
    return root.resolve() / FOLDER / "journal"


def _entries(root: Path) -> list[Path]:
    """The entries' files, the oldest first."""
    folder = _folder(root)
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if _ENTRY.fullmatch(path.name))


def _next_id(root: Path) -> str:
    entries = _entries(root)
    last = int(entries[-1].name.partition("-")[0]) if entries else 0
    return f"{last + 1:06}-{secrets.token_hex(4)}"


def _store(entry: JournalEntry, root: Path, consequence: str) -> None:
    folder = _folder(root)
    text = json.dumps(
        {
            "version": _VERSION,
            "created": entry.created,
            "files": [_to_json(saved, root.resolve()) for saved in entry.files],
        }
    )
    try:
        _make_folder(folder)
        temporary = folder / f"{entry.id}.tmp"
        temporary.unlink(missing_ok=True)  # of a run that was killed
        write_new(temporary, text.encode())
        move_over(temporary, folder / f"{entry.id}.json")
        for path in _entries(root)[:-KEPT_ENTRIES]:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise ApplyError(
            f"{folder}: the journal for undo cannot be written ({error.strerror or error});"
            f" {consequence}"
        ) from error


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    for above in (folder, *folder.parents[:2]):
        sync_folder(above)


def _store_rest(entry: JournalEntry, root: Path) -> None:
    """Store an entry anew with the files that are left in it, or take it off."""
    if entry.files:
        _store(entry, root, "its newest entry names more files than it should")
    else:
        (_folder(root) / f"{entry.id}.json").unlink(missing_ok=True)


def _to_json(saved: SavedFile, root: Path) -> dict[str, object]:
    # Relative, so that a project that was moved can be undone where it is now.
    inside = saved.path.is_relative_to(root)
    return {
        "path": str(saved.path.relative_to(root) if inside else saved.path),
        "old": base64.b64encode(zlib.compress(saved.old)).decode("ascii"),
        "new_sha256": saved.new_sha256,
        "mode": saved.mode,
    }


def _load(path: Path, root: Path) -> JournalEntry:
    try:
        content = json.loads(path.read_bytes())
        version = content["version"]
        files = tuple(
            SavedFile(
                root.resolve() / item["path"],
                zlib.decompress(base64.b64decode(item["old"], validate=True)),
                item["new_sha256"],
                item["mode"],
            )
            for item in content["files"]
        )
        created = content["created"]
    except (OSError, ValueError, KeyError, TypeError, zlib.error) as error:
        raise ApplyError(
            f"{path}: this entry of the undo journal is damaged ({error}); delete it to go on"
        ) from error
    if version != _VERSION:
        raise ApplyError(f"{path}: written by another version of remat-migrate; use that to undo")
    return JournalEntry(path.stem, created, files)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
