"""Runs that are killed, fail, or meet another process at any call that changes the disk.

Every file must be intact, either old or new, with its mode; `undo` restores the old files, after
which `--fix` does the work; nothing temporary is left. By default a sample of the calls is tried,
with `-m slow` all of them.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import kills
import pytest
from kills import PROJECT, STATE, Event, Fault, Ran

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a run is a fork of this process")

FIX = ("--fix", "--no-cache", "--output-format", "concise", ".")
UNDO = ("undo", ".")
BLOCK = """\
from functools import partial

import jax


@partial(jax.checkpoint, concrete=True)
def block(x, flag):
  if flag:  # Python needs it
    return x * 2
  return x
"""
CALLER = """\
import jax

from .block import block

slope = jax.grad(lambda x: block(x, flag=True).sum())
"""
SINGLE = "import jax\n\n# {}\nlayer = jax.checkpoint(abs, concrete=False)\n"
NOTEBOOK = """\
{"cells": [{"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [],
 "source": ["import jax\\n", "f = jax.remat(abs, concrete=False)"]}],
 "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
"""
# One file of every kind: a fix that spans two files, line ends, encodings, modes.
FILES: dict[str, tuple[str | bytes, int]] = {
    "pyproject.toml": ("[tool.remat-migrate]\n", 0o644),
    "pkg/block.py": (BLOCK, 0o644),
    "pkg/use.py": (CALLER, 0o755),
    "pkg/windows.py": (SINGLE.format("plain").replace("\n", "\r\n"), 0o600),
    "pkg/marked.py": (b"\xef\xbb\xbf" + SINGLE.format("é").encode(), 0o664),
    "pkg/latin.py": (b"# coding: latin-1\n" + SINGLE.format("é").encode("latin-1"), 0o644),
    "pkg/naïve's ☃.py": (SINGLE.format("name"), 0o644),
    "pkg/locked.py": (SINGLE.format("read-only"), 0o444),
    "pkg/broken.py": ("import jax\njax.checkpoint(f, concrete=True\n", 0o644),
    "scripts/train.sh": ("#!/bin/sh\nexport JAX_NEW_CHECKPOINT=0\npython -m train\n", 0o755),
    "notebooks/one.ipynb": (NOTEBOOK, 0o644),
}

# The mode of each file, and its content or the target of the link.
Tree = dict[str, tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Subject:
    """A project before and after an uninterrupted `--fix`, and the folder to run in."""

    before: Path
    after: Path
    place: Path

    def start(self, command: tuple[str, ...]) -> Path:
        """Return a copy of the project: the fixed one for `undo`."""
        return copy(self.after if command is UNDO else self.before, self.place)

    @property
    def old(self) -> Tree:
        """The files before the fix."""
        return tree_of(self.before)

    @property
    def new(self) -> Tree:
        """The files after the fix."""
        return tree_of(self.after)


def copy(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(source, target, symlinks=True)


def tree_of(root: Path) -> Tree:
    """Read the project in a folder, or the folder itself."""
    found: Tree = {}
    root = root / PROJECT if (root / PROJECT).is_dir() else root
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            continue
        content = path.read_bytes() if stat.S_ISREG(mode) else b""
        found[name] = (mode, os.fsencode(os.readlink(path)) if path.is_symlink() else content)
    return found


def is_temporary(name: str) -> bool:
    return name.rpartition("/")[2].startswith(".remat-") and name.endswith(".tmp")


def neither(tree: Tree, *wanted: Tree, but: str = "") -> list[str]:
    """The files whose state is in none of the wanted trees, ignoring temporary files."""
    names = {name for name in tree if not is_temporary(name)}.union(*wanted) - {but}
    return [n for n in sorted(names) if all(tree.get(n) != other.get(n) for other in wanted)]


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    folder = tmp_path_factory.mktemp("kills").resolve()
    before, after, place = folder / "before", folder / "after", folder / "place"
    for name, (content, mode) in FILES.items():
        path = before / PROJECT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)
    (before / PROJECT / "pkg/link.py").symlink_to("block.py")
    # The first run imports what takes most of the time of a fork.
    kills.main_once(copy(before, place), *FIX)
    done = kills.run(copy(before, place), *FIX)
    assert (done.code, done.unseen) == (1, ()), done.err
    copy(place, after)  # The journal is that of the project in this place.
    found = Subject(before, after, place)
    assert len(neither(found.old, found.new)) > 6
    return found


@pytest.fixture(params=[2, pytest.param(0, marks=pytest.mark.slow)], ids=["some", "all"])
def sample(request: pytest.FixtureRequest) -> Callable[[Ran], Iterator[tuple[int, Event]]]:
    """Return calls of a run with their numbers: some, or all."""

    def chosen(whole: Ran) -> Iterator[tuple[int, Event]]:
        calls = list(enumerate(whole.events, 1))
        assert len(calls) > 100
        number = request.param or len(calls)
        yield from sorted(random.Random(2).sample(calls, number), key=lambda call: call[0])

    return chosen


COMMANDS = pytest.mark.parametrize("command", [FIX, UNDO], ids=["fix", "undo"])


def check_after(subject: Subject, root: Path) -> None:
    """Check a project after an interrupted run: no file is lost, and undo and fix still work."""
    assert neither(tree_of(root), subject.old, subject.new) == []
    journal = list((root / STATE).rglob("*.json"))
    undone = kills.run(root, *UNDO)
    assert undone.code == (0 if journal else 2), undone.err
    assert journal or "nothing to undo" in undone.err
    assert tree_of(root) == subject.old
    finished = kills.run(root, *FIX)
    assert finished.code == 1, finished.err
    assert tree_of(root) == subject.new


@COMMANDS
def test_killed_at_every_call(command, subject, sample) -> None:
    whole = kills.run(subject.start(command), *command)
    assert not whole.unseen
    for number, event in sample(whole):
        for torn in (0, number) if event.name == "write" else (0,):
            root = subject.start(command)

            def kill(current: int, event: Event, number: int = 0 if torn else number) -> None:
                if current == number:
                    os.kill(os.getpid(), signal.SIGKILL)

            assert kills.run(root, *command, fault=kill, torn=torn).code == -signal.SIGKILL
            check_after(subject, root)


@COMMANDS
@pytest.mark.parametrize(
    ("code", "later"),
    [
        pytest.param(errno.ENOSPC, False, id="full once", marks=pytest.mark.slow),
        pytest.param(errno.ENOSPC, True, id="full from then on"),
        pytest.param(errno.EACCES, False, id="refused once"),
        pytest.param(errno.EACCES, True, id="refused from then on", marks=pytest.mark.slow),
    ],
)
def test_calls_that_fail(command, code: int, later: bool, subject, sample) -> None:
    whole = kills.run(subject.start(command), *command)
    for number, _ in sample(whole):

        def fail(current: int, event: Event, number: int = number) -> None:
            writes = event.creates or event.name not in ("open", "close")
            if writes and (current >= number if later else current == number):
                raise OSError(code, os.strerror(code))

        root = subject.start(command)
        done = kills.run(root, *command, fault=fail)
        assert "Traceback" not in done.err
        # The fault may have hit an optional operation, such as syncing a folder.
        assert done.code == whole.code or (done.code == 2 and "error: " in done.err), done.err
        check_after(subject, root)


def in_another_process(number: int, act: Callable[[], object]) -> Fault:
    def fault(current: int, event: Event) -> None:
        if current == number:
            child = os.fork()
            if child == 0:
                kills.uncounted()
                try:
                    act()
                finally:
                    os.kill(os.getpid(), signal.SIGKILL)
            os.waitpid(child, 0)

    return fault


def edit(path: Path) -> None:
    new = path.with_name("other")
    new.write_bytes(b"# mine\n")
    new.rename(path)


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("..")


@COMMANDS
@pytest.mark.parametrize("act", [edit, os.unlink, link])
def test_edits_at_every_call(command, act: Callable[[Path], None], subject, sample) -> None:
    """A file that another process edits, deletes or replaces stays so."""
    changed = neither(subject.old, subject.new)
    for number, event in sample(kills.run(subject.start(command), *command)):
        name = changed[number % len(changed)]
        root = subject.start(command)
        path = root / PROJECT / name
        if event.name == "replace" and event.to == path:
            continue  # the instant that no file system closes
        done = kills.run(root, *command, fault=in_another_process(number, partial(act, path)))
        assert done.code >= 0
        assert "Traceback" not in done.err
        if act is edit:
            assert path.read_bytes() == b"# mine\n"
        else:
            assert path.is_symlink() if act is link else not os.path.lexists(path)
        assert neither(tree_of(root), subject.old, subject.new, but=name) == []
        kills.run(root, *UNDO)
        assert neither(tree_of(root), subject.old, but=name) == []


@COMMANDS
def test_folders_exchanged_at_every_call(command, subject, sample) -> None:
    """A folder becomes a link to a copy of it outside the project: nothing is written there."""
    told = 0
    for number, _ in sample(kills.run(subject.start(command), *command)):
        for name in (f"{PROJECT}/pkg", f"{STATE}/remat-migrate"):
            root = subject.start(command)
            folder, outside = root / name, root.with_name("outside")
            shutil.rmtree(outside, ignore_errors=True)
            if folder.is_dir():
                shutil.copytree(folder, outside, symlinks=True)
            else:
                outside.mkdir()

            def exchange(folder: Path = folder, outside: Path = outside) -> None:
                if folder.is_dir():
                    folder.rename(f"{folder}-moved")
                folder.parent.mkdir(exist_ok=True)
                folder.symlink_to(outside)

            before = tree_of(outside)
            done = kills.run(root, *command, fault=in_another_process(number, exchange))
            assert "Traceback" not in done.err
            assert folder.is_symlink()
            assert tree_of(outside) == before
            told += "symbolic link" in done.err
    assert told


@COMMANDS
def test_data_is_on_disk_before_it_is_needed(command, subject) -> None:
    """After a loss of power, each file is old or new, and the journal has the old ones.

    POSIX guarantees the data of a file once it is synced, and a name once its folder is.
    """
    root = subject.start(command)
    unsynced: set[Path] = set()
    journal = root / STATE / "remat-migrate"
    replaced = 0
    for event in kills.run(root, *command).events:
        if event.name == "write":
            unsynced.add(event.path)
        elif event.name == "fsync":
            unsynced.discard(event.path)
        elif event.path.suffix == ".lock":
            continue  # nobody needs it later
        elif event.name in ("replace", "unlink", "mkdir") or event.creates:
            unsynced.add(event.path.parent)
        if event.name == "replace" and event.to is not None:
            assert event.path not in unsynced, event
            if journal not in event.to.parents:
                replaced += 1
                assert not any(path == journal or journal in path.parents for path in unsynced)
    assert replaced > 6
    assert root / PROJECT / "pkg" not in unsynced
