"""The temporary folder of a run, which nothing that was started in it outlives.

A watchdog process waits until the run has ended. If the run did not remove its folder (it was
killed), the watchdog ends all processes that belong to it and removes the folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

# In the environment of every process that a run starts: a path in the run's folder.
MARK = "REMAT_MIGRATE_RUN"

_PREFIX = "remat-migrate-"
_CLEAN = b"removed"
_ROUNDS = 50
_PAUSE_SECONDS = 0.1


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a temporary folder, and remove it however the run ends."""
    with raised_signals():
        folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX)))
        watchdog = _watchdog(folder)
        try:
            yield folder
        finally:
            # What a worker started while it was being ended.
            _kill_marked(folder)
            remove_folder(folder)
            with suppress(BrokenPipeError):
                watchdog.communicate(_CLEAN)


def remove_folder(folder: Path) -> None:
    """Remove a folder, including read-only folders in it, without following links.

    Raises:
        OSError: something cannot be removed.
    """
    if folder.is_symlink():
        folder.unlink()
        return
    with suppress(FileNotFoundError):
        try:
            shutil.rmtree(folder)
        except PermissionError:
            _unlock(folder)
            shutil.rmtree(folder)


def _unlock(folder: Path) -> None:
    # The error handlers of shutil and tempfile follow links and would change the user's files.
    folder.chmod(stat.S_IRWXU)
    for entry in list(os.scandir(folder)):
        if entry.is_dir(follow_symlinks=False):
            _unlock(Path(entry.path))


# -- the watchdog


def _watchdog(folder: Path) -> subprocess.Popen[bytes]:
    program = f"from {__name__} import watch; watch()"
    return subprocess.Popen(
        [sys.executable, "-c", program, folder],
        # Not the user's folder, whose modules might hide others.
        cwd="/",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def watch() -> None:
    """Wait for the end of the run whose folder is on the command line, and clean up after it."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    # Returns when the run says so, or when its end of the pipe is closed, whatever ended it.
    if sys.stdin.buffer.read() != _CLEAN:
        end_run(Path(sys.argv[1]))


def end_run(folder: Path) -> None:
    """End the processes of a run and remove its folder."""
    for _ in range(_ROUNDS):
        ended = _kill_marked(folder)
        with suppress(OSError):  # a process that ended just now may have written to it
            remove_folder(folder)
        if not ended and not folder.exists():
            return
        time.sleep(_PAUSE_SECONDS)


def _kill_marked(folder: Path) -> bool:
    """Kill the processes of a run; return whether there were any."""
    import psutil

    found: set[psutil.Process] = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            mark = process.environ().get(MARK)
            if mark is not None and Path(mark).is_relative_to(folder):
                # A descendant may have an environment of its own.
                found |= {process, *process.children(recursive=True)}
    sessions = {_session(process.pid) for process in found} - {None, os.getsid(0)}
    for process in psutil.process_iter():
        if process in found or _session(process.pid) in sessions:
            with suppress(psutil.Error):
                process.kill()
    return bool(found)


def _session(process: int) -> int | None:
    with suppress(OSError):
        return os.getsid(process)
    return None


_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Terminated(KeyboardInterrupt):
    """The process was asked to end by a signal other than SIGINT.

    Attributes:
        signal: its number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.strsignal(number))
        self.signal = number


def signal_of(interrupt: BaseException) -> int:
    """Return the number of the signal that raised an interrupt."""
    return interrupt.signal if isinstance(interrupt, Terminated) else int(signal.SIGINT)


@contextmanager
def raised_signals() -> Iterator[None]:
    """Raise `Terminated` in the main thread for signals that would end the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # An ignored signal stays ignored, as `nohup` wants it.
    replaced = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated(number)
