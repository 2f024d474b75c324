"""Watch the processes that a command has started: their memory, whether they run, their end."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil

_TAIL = 16_384
_MOST_OUTPUT = 64 << 20
_FIRST_WAIT, _LONGEST_WAIT = 0.01, 0.2
_GRACE = 2.0
# Processes that use less of a CPU than this share, and do not wait for one, are idle.
_IDLE = 0.05


class ProcessTree:
    """The leader of a process group and all its descendants, also those that left the group.

    A descendant whose parent has ended is known only if `look` saw it before.
    """

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._found: set[psutil.Process] = set()

    def look(self) -> None:
        """Find the processes of the tree that exist now."""
        processes = set(psutil.process_iter(["ppid"]))
        found = {p for p in processes if p in self._found or self._leader in (p.pid, _group(p))}
        children: defaultdict[int, set[psutil.Process]] = defaultdict(set)
        for process in processes:
            children[process.info["ppid"]].add(process)
        waiting = set(found)
        while waiting:
            new = children[waiting.pop().pid] - found
            found |= new
            waiting |= new
        self._found = found

    def resident(self) -> int:
        """Return the bytes of memory that the processes use, shared memory counted once."""
        own = most_shared = 0
        for process in self._found:
            with suppress(psutil.Error):
                memory = process.memory_info()
                shared = getattr(memory, "shared", 0)  # known on Linux
                own += memory.rss - shared
                most_shared = max(most_shared, shared)
        return own + most_shared

    def activity(self) -> tuple[float, bool]:
        """Return the CPU seconds used so far, and whether a process runs or waits for a CPU."""
        seconds, runs = 0.0, False
        for process in self._found:
            with suppress(psutil.Error):
                times = process.cpu_times()
                seconds += times.user + times.system
                # Of processes that have ended.
                seconds += getattr(times, "children_user", 0.0)
                seconds += getattr(times, "children_system", 0.0)
                runs = runs or process.status() == psutil.STATUS_RUNNING
        return seconds, runs

    def leads(self) -> bool:
        """Return whether the leader still runs."""
        with suppress(psutil.Error):
            return _runs(psutil.Process(self._leader))
        return False

    def alive(self) -> bool:
        """Look, and return whether any process still runs."""
        self.look()
        return any(map(_runs, self._found))

    def signal(self, number: int) -> None:
        """Send a signal to the group at once, and to each process that left it."""
        with suppress(OSError):
            os.killpg(self._leader, number)
        for process in self._found:
            if _group(process) not in (None, self._leader):
                with suppress(psutil.Error):
                    process.send_signal(number)


class Budget:
    """The time that the processes of a tree may take, of which waiting for a CPU is no part.

    Attributes:
        spent: the seconds that they have taken: CPU time while they compute, and all the time
            while they are idle.
    """

    def __init__(self, tree: ProcessTree, seconds: float) -> None:
        self.spent = 0.0
        self._seconds = seconds
        self._tree = tree
        self._time = time.monotonic()
        self._used = tree.activity()[0]

    def is_over(self) -> bool:
        """Return whether they have taken all of it; the tree must have looked before."""
        now, (used, runs) = time.monotonic(), self._tree.activity()
        passed, computed = now - self._time, max(0.0, used - self._used)
        is_idle = not runs and computed < _IDLE * passed
        self.spent += passed if is_idle else min(passed, computed)
        self._time, self._used = now, used
        return self.spent >= self._seconds


def _group(process: psutil.Process) -> int | None:
    try:
        return os.getpgid(process.pid)
    except OSError:
        return None


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    return False


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[ProcessTree]:
    """Yield the processes that a command has started, and end them afterwards."""
    tree = ProcessTree(process.pid)
    try:
        yield tree
    finally:
        tree.look()
        tree.signal(signal.SIGTERM)
        deadline = time.monotonic() + _GRACE
        while tree.alive() and time.monotonic() < deadline:
            process.poll()
            time.sleep(_FIRST_WAIT)
        tree.look()
        tree.signal(signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)


def wait_for_end(
    process: subprocess.Popen[bytes],
    tree: ProcessTree,
    output: int,
    budget: Budget,
    memory: int,
    stop: threading.Event | None = None,
    is_beyond: Callable[[], bool] = lambda: False,
) -> str | None:
    """Wait for a command to end, and stop it if it takes too long or too much memory.

    Args:
        process: the command.
        tree: its processes.
        output: the file that it prints to, which is emptied when it becomes large.
        budget: the time that they may take.
        memory: bytes that all its processes together may use.
        stop: set from another thread to stop it.
        is_beyond: returns whether it is beyond another limit.

    Returns:
        The reason to stop it: "time", "memory", "limit", or "stop"; None if it has ended.
    """
    pause = _FIRST_WAIT
    while True:
        if stop is not None and stop.is_set():
            return "stop"
        try:
            process.wait(pause)
            return None
        except subprocess.TimeoutExpired:
            pause = min(pause * 1.5, _LONGEST_WAIT)
        tree.look()
        if tree.resident() > memory:
            return "memory"
        if budget.is_over():
            return "time"
        if is_beyond():
            return "limit"
        if os.fstat(output).st_size > _MOST_OUTPUT:
            os.ftruncate(output, 0)  # opened for appending: the next write starts at 0


def tail_of(output: int) -> str:
    """Return the end of what was written to a file."""
    size = os.fstat(output).st_size
    data = os.pread(output, _TAIL, max(0, size - _TAIL))
    return data.decode(errors="replace")
