"""Fault injection at the n-th system call with which a run changes something on disk.

The run is a fork of this process in which these calls are replaced by counting versions. Calls
count if they concern a given folder, through a path below it or a file descriptor opened below it.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Calls whose first argument is a path or a file descriptor. Only `os.open` counts: the built-in
# `open` is
# used for reading, which `Ran.unseen` verifies.
CALLS = (
    *("open", "write", "fsync", "close", "replace", "rename", "unlink", "remove", "mkdir", "rmdir"),
    *("chmod", "chown", "setxattr", "link", "symlink", "truncate", "ftruncate", "utime"),
)
# Calls that need free disk space.
_GROWING = frozenset({"write", "mkdir", "fsync", "setxattr", "link", "symlink"})
# Calls with a second path.
_MOVING = ("replace", "rename", "link")
# Python audit events for changes on disk.
_AUDITED = {
    "os.rename": "replace",
    "os.remove": "unlink",
    "os.mkdir": "mkdir",
    "os.chmod": "chmod",
    "os.chown": "chown",
    "os.setxattr": "setxattr",
    "os.link": "link",
    "os.symlink": "symlink",
    "os.truncate": "truncate",
    "os.utime": "utime",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One call: its name and path, and for `open` and `replace` the flags and the destination."""

    name: str
    path: Path
    to: Path | None = None
    creates: bool = False
    data: bytes = b""


# Receives each call before it is made, with its number; may raise, kill the process or edit files.
Fault = Callable[[int, Event], None]


def kill_at(number: int) -> Fault:
    """Kill the process right before a call; past the last call, nothing happens."""

    def fault(current: int, event: Event) -> None:
        if current == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return fault


def fail_at(number: int, code: int) -> Fault:
    """Make one call fail."""

    def fault(current: int, event: Event) -> None:
        if current == number:
            raise OSError(code, os.strerror(code))

    return fault


def full_from(number: int) -> Fault:
    """Make every call from this one on fail for lack of disk space."""

    def fault(current: int, event: Event) -> None:
        if current >= number and (event.name in _GROWING or event.creates):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return fault


def dead_from(number: int) -> Fault:
    """Make every call from this one on fail with an I/O error; files can still be closed."""

    def fault(current: int, event: Event) -> None:
        reads = event.name == "open" and not event.creates
        if current >= number and event.name != "close" and not reads:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    return fault


@dataclass(slots=True)
class Counting:
    """Intercepts the calls of `os`."""

    root: Path
    fault: Fault
    torn: int = 0
    events: list[Event] = field(default_factory=list)
    handles: dict[int, Path] = field(default_factory=dict)
    expected: int = 0

    def install(self) -> None:
        """Replace the calls in this process permanently."""
        for name in CALLS:
            setattr(os, name, self._counting(name, _REAL[name]))

    def _counting(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            folder = options.get("src_dir_fd", options.get("dir_fd"))
            path = self._path(arguments[0], folder)
            if path is None or (name == "open" and _only_reads(path, arguments[1])):
                return real(*arguments, **options)
            to = self._path(arguments[1], options.get("dst_dir_fd")) if name in _MOVING else None
            self._count(self._event(name, path, to, arguments), arguments)
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

    @staticmethod
    def _event(name: str, path: Path, to: Path | None, arguments: Sequence[Any]) -> Event:
        if name == "open":
            return Event(name, path, creates=bool(arguments[1] & os.O_CREAT))
        if name in _MOVING:
            return Event("replace" if name == "rename" else name, path, to)
        if name == "write":
            return Event(name, path, data=bytes(arguments[1]))
        return Event("unlink" if name == "remove" else name, path)

    def _count(self, event: Event, arguments: Sequence[Any]) -> None:
        self.events.append(event)
        number = len(self.events)
        if number == self.torn and event.name == "write":
            # Only half of the data reaches the disk.
            _REAL["write"](arguments[0], event.data[: len(event.data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        self.fault(number, event)


_REAL = {name: getattr(os, name) for name in CALLS}


def uncounted() -> None:
    """Restore the original calls in this process."""
    for name, real in _REAL.items():
        setattr(os, name, real)


def _only_reads(path: Path, flags: int) -> bool:
    """Return whether a call opens a file only for reading; folders are opened to be synced."""
    return not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and not path.is_dir()


def load(*commands: Sequence[str]) -> None:
    """Import what the commands need before forking, because imports take most of their time."""
    import contextlib
    import io
    import tempfile

    from kill_trees import make_tree

    from remat_migrate.cli.commands import main

    for command in commands:
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.suppress(SystemExit),
        ):
            root = make_tree(Path(folder).resolve() / "project")
            with contextlib.chdir(root):
                main(["--fix", "--output-format", "concise", "."])
            main([*command, str(root)])


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a forked run.

    Attributes:
        code: the exit code; a negative number is the signal that killed the process.
        out: stdout.
        err: stderr.
        events: the calls it made, if it finished.
        unseen: changes on disk by calls that are not counted.
    """

    code: int
    out: str
    err: str
    events: tuple[Event, ...]
    unseen: tuple[str, ...]


def run(
    root: Path, arguments: Sequence[str], fault: Fault = lambda number, event: None, torn: int = 0
) -> Ran:
    """Run `remat-migrate` in a fork of this process, with an injected fault.

    Args:
        root: the working folder, where calls count.
        arguments: the command line.
        fault: receives each call.
        torn: the number of the write during which the run is killed.
    """
    import pickle
    import tempfile

    with tempfile.TemporaryDirectory(prefix="remat-kills-") as name:
        streams = [Path(name, stream) for stream in ("out", "err", "events")]
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _be_the_run(root, arguments, Counting(root, fault, torn), streams)
        _, status = os.waitpid(child, 0)
        out, err = (path.read_text(errors="replace") for path in streams[:2])
        events, unseen = ((), ())
        if streams[2].exists():
            events, unseen = pickle.loads(streams[2].read_bytes())
        return Ran(os.waitstatus_to_exitcode(status), out, err, events, unseen)


def _be_the_run(
    root: Path, arguments: Sequence[str], counting: Counting, streams: Sequence[Path]
) -> None:
    """Run the command line in this process, then exit."""
    import pickle

    from remat_migrate.cli.commands import main

    code = 70
    unseen: list[str] = []
    end = os._exit
    try:
        for number, path in enumerate(streams[:2], 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
        os.chdir(root)
        sys.addaudithook(_watching(counting, unseen))
        counting.install()
        try:
            main(list(arguments))
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 71
        sys.stdout.flush()
        sys.stderr.flush()
        streams[2].write_bytes(pickle.dumps((tuple(counting.events), tuple(unseen))))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        end(code)


def _watching(counting: Counting, unseen: list[str]) -> Callable[[str, tuple[Any, ...]], None]:
    """Record changes below the folder by calls that are not counted."""

    def hook(name: str, arguments: tuple[Any, ...]) -> None:
        if counting.expected or (name != "open" and name not in _AUDITED):
            return
        if name == "open" and not (
            isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        ):
            return
        path = arguments[0]
        if isinstance(path, str | bytes | os.PathLike):
            found = Path(os.path.abspath(os.fsdecode(path)))
            if found.is_relative_to(counting.root):
                unseen.append(f"{name} {found}")

    return hook
