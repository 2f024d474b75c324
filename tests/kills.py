"""Run `remat-migrate` in a fork, and interrupt it at the n-th call that changes something on disk.

The folder of a run holds the project and the state folder with its journal. In the fork, these
calls are replaced by counting versions. They count if they concern that folder, through a path
below it or a file descriptor opened below it.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remat_migrate.cli.commands import main

# What is in the folder of a run.
PROJECT, STATE = "project", "state"
# Calls whose first argument is a path or a file descriptor. Only `os.open` counts: the built-in
# `open` is used for reading, which `Ran.unseen` verifies.
CALLS = (
    *("open", "write", "fsync", "close", "replace", "rename", "unlink", "remove", "mkdir", "rmdir"),
    *("chmod", "chown", "setxattr", "link", "symlink", "truncate", "ftruncate", "utime"),
)
# Calls with a second path.
MOVING = ("replace", "rename", "link")
# Python audit events for changes on disk, beside `open`.
AUDITED = frozenset(
    f"os.{name}" for name in CALLS if name not in ("open", "write", "fsync", "close", "ftruncate")
)
REAL = {name: getattr(os, name) for name in CALLS}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True, slots=True)
class Event:
    """One call: its name and path; for `open` whether it creates, for `replace` the new path."""

    name: str
    path: Path
    to: Path | None = None
    creates: bool = False
    data: bytes = b""


# Receives each call before it is made, with its number; may raise, kill the process or edit files.
Fault = Callable[[int, Event], None]


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a forked run.

    Attributes:
        code: the exit code; a negative number is the signal that killed the process.
        err: stderr.
        events: the calls it made, if it finished.
        unseen: changes on disk by calls that are not counted.
    """

    code: int
    err: str
    events: tuple[Event, ...]
    unseen: tuple[str, ...]


def run(
    root: Path, *arguments: str, fault: Fault = lambda number, event: None, torn: int = 0
) -> Ran:
    """Run `remat-migrate` in a project, in a fork of this process.

    Args:
        root: the folder where calls count, with the project.
        arguments: the command line.
        fault: receives each call.
        torn: the number of the write during which the run is killed.
    """
    with tempfile.TemporaryDirectory(prefix="remat-kills-") as name:
        errors, events = Path(name, "errors"), Path(name, "events")
        errors.touch()
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _be_the_run(_Counting(root, fault, torn), arguments, errors, events)
        _, status = os.waitpid(child, 0)
        made = pickle.loads(events.read_bytes()) if events.exists() else ((), ())
        return Ran(os.waitstatus_to_exitcode(status), errors.read_text(errors="replace"), *made)


def main_once(root: Path, *arguments: str) -> None:
    """Run in this process what forks need not import again."""
    with (
        contextlib.chdir(root / PROJECT),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.suppress(SystemExit),
    ):
        main(list(arguments))


def uncounted() -> None:
    """Restore the original calls in this process."""
    for name, real in REAL.items():
        setattr(os, name, real)


@dataclass(slots=True)
class _Counting:
    root: Path
    fault: Fault
    torn: int
    events: list[Event] = field(default_factory=list)
    handles: dict[int, Path] = field(default_factory=dict)
    unseen: list[str] = field(default_factory=list)
    expected: int = 0

    def install(self) -> None:
        """Replace the calls in this process permanently."""
        sys.addaudithook(self._hook)
        for name, real in REAL.items():
            setattr(os, name, self._counting(name, real))

    def _counting(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            path = self._path(arguments[0], options.get("src_dir_fd", options.get("dir_fd")))
            # Folders are opened to be synced.
            is_read = name == "open" and not arguments[1] & _WRITES and path and not path.is_dir()
            if path is None or is_read:
                return real(*arguments, **options)
            to = self._path(arguments[1], options.get("dst_dir_fd")) if name in MOVING else None
            self._count(_event(name, path, to, arguments), arguments)
            if name == "close":
                self.handles.pop(arguments[0], None)
            self.expected += 1
            try:
                result = real(*arguments, **options)
            finally:
                self.expected -= 1
            if name == "open":
                self.handles[result] = path
            return result

        return call

    def _path(self, argument: object, folder: int | None = None) -> Path | None:
        """Return the path that a call concerns if it is below the root."""
        if isinstance(argument, int):
            return self.handles.get(argument)
        if not isinstance(argument, str | bytes | os.PathLike):
            return None
        above = Path() if folder is None else self.handles.get(folder)
        if above is None:
            return None
        path = Path(os.path.abspath(above / os.fsdecode(argument)))
        return path if path.is_relative_to(self.root) else None

    def _count(self, event: Event, arguments: Sequence[Any]) -> None:
        self.events.append(event)
        number = len(self.events)
        if number == self.torn and event.name == "write":
            # Only half of the data reaches the disk.
            REAL["write"](arguments[0], event.data[: len(event.data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        self.fault(number, event)

    def _hook(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Record changes below the folder by calls that are not counted."""
        opens = name == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
        if self.expected or not (opens or name in AUDITED):
            return
        if isinstance(arguments[0], str | bytes | os.PathLike) and self._path(arguments[0]):
            self.unseen.append(f"{name} {arguments[0]!r}")


def _event(name: str, path: Path, to: Path | None, arguments: Sequence[Any]) -> Event:
    if name == "open":
        return Event(name, path, creates=bool(arguments[1] & os.O_CREAT))
    if name in MOVING:
        return Event("replace" if name == "rename" else name, path, to)
    if name == "write":
        return Event(name, path, data=bytes(arguments[1]))
    return Event("unlink" if name == "remove" else name, path)


def _be_the_run(counting: _Counting, arguments: Sequence[str], errors: Path, events: Path) -> None:
    """Run the command line in this process, then exit."""
    code = 70
    end = os._exit
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(errors, os.O_WRONLY), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        os.environ["XDG_STATE_HOME"] = str(counting.root / STATE)
        os.chdir(counting.root / PROJECT)
        counting.install()
        try:
            main(list(arguments))
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 71
        sys.stdout.flush()
        sys.stderr.flush()
        events.write_bytes(pickle.dumps((tuple(counting.events), tuple(counting.unseen))))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        end(code)
