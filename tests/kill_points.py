"""Campaigns over every system call that changes something on disk; each run is a fork."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import stat
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from kill_checks import FIX, UNDO, Findings, Subject, check_after
from kill_faults import Event, Fault, Ran, dead_from, fail_at, full_from, kill_at, run, uncounted
from kill_trees import State, Tree, differences, strays, tree_of
from power_loss import Disk, losses, lost_by

Sample = Callable[[int], Iterable[int]]


def points(subject: Subject, sample: Sample) -> list[Findings]:
    """Kill `--fix` and `undo` before every call and during every write."""
    both = []
    for command, fixed in ((FIX, False), (UNDO, True)):
        found = Findings(f"kill points of {'undo' if fixed else '--fix'}")
        whole = run(subject.start(fixed), command)
        found.counts["calls"] = len(whole.events)
        found.check("undisturbed", "changes were made past the calls", not whole.unseen)
        for number in sample(len(whole.events)):
            event = whole.events[number - 1]
            for torn in (False, True) if event.name == "write" else (False,):
                root = subject.start(fixed)
                if torn:
                    done = run(root, command, torn=number)
                else:
                    done = run(root, command, kill_at(number))
                where = f"{'in' if torn else 'before'} call {number}, {_named(event, root)}"
                found.check(where, "was not killed", done.code == -signal.SIGKILL, done.err)
                found.counts["killed"] += 1
                temporary = [name for name in strays(root) if "journal" not in name]
                found.counts["most temporary files left"] = max(
                    found.counts["most temporary files left"], len(temporary)
                )
                check_after(found, where, subject, root)
        both.append(found)
    return both


def _named(event: Event, root: Path) -> str:
    return f"{event.name} {event.path.relative_to(root)}"


def faults(subject: Subject, sample: Sample) -> list[Findings]:
    """Make every call fail, once or together with all later calls."""
    kinds: dict[str, Callable[[int], Fault]] = {
        "full disk from": full_from,
        "dead disk from": dead_from,
        "no space once at": lambda number: fail_at(number, errno.ENOSPC),
        "input/output error once at": lambda number: fail_at(number, errno.EIO),
        "refused once at": lambda number: fail_at(number, errno.EACCES),
    }
    everything = []
    for command, fixed in ((FIX, False), (UNDO, True)):
        whole = run(subject.start(fixed), command)
        for kind, fault in kinds.items():
            found = Findings(f"{'undo' if fixed else '--fix'}, {kind} each call")
            found.counts["calls"] = len(whole.events)
            for number in sample(len(whole.events)):
                root = subject.start(fixed)
                done = run(root, command, fault(number))
                where = f"call {number}, {_named(whole.events[number - 1], root)}"
                _check_failed(found, where, done, whole.code)
                check_after(found, where, subject, root)
            everything.append(found)
    return everything


def _check_failed(found: Findings, where: str, done: Ran, usual: int) -> None:
    """Check that a run that met a fault exits normally or with an error message, without a
    traceback.
    """
    broke = "Traceback" in done.err or "defect" in done.err
    found.check(where, "the run crashed:", not broke and done.code >= 0, done.err)
    if done.code == 2:
        found.check(where, "no error message:", "error: " in done.err, done.err)
        found.counts["ended with 2"] += 1
    else:
        # The fault hit an optional operation, such as syncing a folder or closing a file opened for
        # reading.
        found.check(where, "unexpected exit code:", done.code == usual, f"{done.code} {done.err}")
        found.counts["went on"] += 1


MINE = b"# mine\n"


def concurrent_edits(subject: Subject, sample: Sample) -> list[Findings]:
    """Edit, delete or replace a file from another process at every call."""
    kinds: dict[str, Callable[[Path], None]] = {
        "edits": lambda path: _replace_by(path, lambda new: new.write_bytes(MINE)),
        "deletes": os.unlink,
        "puts a link in place of": lambda path: _replace_by(path, lambda new: new.symlink_to("..")),
        "puts a folder in place of": lambda path: (path.unlink(), path.mkdir())[1],
        "puts a pipe in place of": lambda path: _replace_by(path, os.mkfifo),
    }
    everything = []
    changed = sorted(name for name, state in subject.old.items() if state != subject.new[name])
    for command, fixed in ((FIX, False), (UNDO, True)):
        whole = run(subject.start(fixed), command)
        for kind, act in kinds.items():
            found = Findings(f"{'undo' if fixed else '--fix'}, another process {kind} a file")
            for number in sample(len(whole.events)):
                root = subject.start(fixed)
                event = whole.events[number - 1]
                name = changed[number % len(changed)]
                if event.name == "replace" and event.to == root / name:
                    continue  # the instant that no file system closes
                done = run(root, command, _edit_at(number, act, root / name))
                where = f"{name} at call {number}, {_named(event, root)}"
                broke = "Traceback" in done.err or done.code < 0
                found.check(where, "the run crashed:", not broke, done.err)
                _check_kept(found, where, subject, root, name, kind)
                found.counts["told"] += name in done.err
                found.counts["after it was written"] += name not in done.err
            everything.append(found)
    return everything


def exchanges(subject: Subject, sample: Sample) -> list[Findings]:
    """Exchange a folder for a link to a copy of it outside the project, at every call."""
    both = []
    changed = [name for name, state in subject.old.items() if state != subject.new[name]]
    sources = sorted({name.rpartition("/")[0] for name in changed} - {""})
    for command, fixed in ((FIX, False), (UNDO, True)):
        found = Findings(f"{'undo' if fixed else '--fix'}, another process exchanges a folder")
        whole = run(subject.start(fixed), command)
        for number in sample(len(whole.events)):
            for name in (*sources, ".remat_migrate", ".remat_migrate/journal"):
                root = subject.start(fixed)
                folder, outside = root / name, root.with_name("outside")
                shutil.rmtree(outside, ignore_errors=True)
                if folder.is_dir():
                    shutil.copytree(folder, outside, symlinks=True)
                else:
                    outside.mkdir()
                before = _everything(outside)
                event = whole.events[number - 1]
                done = run(root, command, _edit_at(number, partial(_link, target=outside), folder))
                where = f"{name} at call {number}, {_named(event, root)}"
                found.check(where, "the run crashed:", "Traceback" not in done.err, done.err)
                found.check(where, "was not exchanged", folder.is_symlink())
                after = _everything(outside)
                found.check(where, "was written outside:", after == before, str(after)[:300])
                found.counts["runs"] += 1
                found.counts["told"] += "symbolic link" in done.err
        both.append(found)
    return both


def _link(folder: Path, target: Path) -> None:
    if folder.is_dir():
        os.rename(folder, f"{folder}-moved")
    folder.parent.mkdir(exist_ok=True)
    folder.symlink_to(target)


def _everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.relative_to(folder).as_posix(): (
            path.lstat().st_mode,
            path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else b"",
        )
        for path in folder.rglob("*")
    }


def _replace_by(path: Path, make: Callable[[Path], object]) -> None:
    new = path.with_name("other")
    make(new)
    os.rename(new, path)


def _edit_at(number: int, act: Callable[[Path], None], path: Path) -> Fault:
    def fault(current: int, event: Event) -> None:
        if current == number:
            child = os.fork()
            if child == 0:
                uncounted()
                try:
                    act(path)
                finally:
                    os.kill(os.getpid(), signal.SIGKILL)
            os.waitpid(child, 0)

    return fault


def _check_kept(
    found: Findings, where: str, subject: Subject, root: Path, name: str, kind: str
) -> None:
    """Check that a concurrent edit is kept, and that all other files are old or new and can be
    undone.
    """
    tree, path = tree_of(root), root / name
    as_left = {
        "edits": path.is_file() and path.read_bytes() == MINE,
        "deletes": not os.path.lexists(path),
        "puts a link in place of": path.is_symlink(),
        "puts a folder in place of": path.is_dir(),
        "puts a pipe in place of": path.is_fifo(),
    }[kind]
    found.check(where, "a concurrent edit is lost:", as_left, str(tree.get(name))[:200])
    others = {key: state for key, state in tree.items() if key != name}
    lost = differences(others, _without(subject.old, name), _without(subject.new, name))
    found.check(where, "a file is neither old nor new:", not lost, "; ".join(lost.lines))
    found.check(where, "temporary files are left:", not strays(root), ", ".join(strays(root)))
    run(root, UNDO)
    others = _without(tree_of(root), name)
    wrong = differences(others, _without(subject.old, name))
    found.check(where, "undo did not restore the other files:", not wrong, "; ".join(wrong.lines))
    found.counts["runs"] += 1


def _without(tree: Tree, name: str) -> Tree:
    return {key: state for key, state in tree.items() if key != name}


def power(subject: Subject, chance: random.Random, each: int) -> list[Findings]:
    """Cut the power after any call: every file must be old or new, and undo must work."""
    both = []
    for command, fixed in ((FIX, False), (UNDO, True)):
        found = Findings(f"power loss in {'undo' if fixed else '--fix'}")
        root = subject.start(fixed)
        disk = Disk.of(root)
        old = {name: state.content for name, state in _plain(subject.old)}
        new = {name: subject.new[name].content for name in old}
        events = run(root, command).events
        states: dict[Path, bytes] = {}
        for number, states in losses(disk, events, chance, each):
            lost = lost_by(states, root, old, new)
            found.check(f"after call {number}", "lost:", not lost, lost)
            found.counts["states of the disk"] += 1
        # The last state is that of a finished run, so every file must be there.
        wanted = old if fixed else new
        late = [name for name, content in wanted.items() if states[root / name] != content]
        found.check("at the end", "is not on the disk:", not late, ", ".join(late))
        both.append(found)
    return both


def _plain(tree: Tree) -> list[tuple[str, State]]:
    return [(name, state) for name, state in tree.items() if stat.S_ISREG(state.mode)]
