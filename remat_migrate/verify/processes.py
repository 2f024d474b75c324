"""Watch the processes that a command has started: their memory, whether they run, their end."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress

import psutil


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


def _group(process: psutil.Process) -> int | None:
    try:
        return os.getpgid(process.pid)
    except OSError:
        return None


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    return False
