"""All processes that a command has started: which are alive, what memory they take, their end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Seen(NamedTuple):
    """A process as the system lists it.

    Attributes:
        parent: the process that started it, or took it over.
        group: its process group.
        born: when it started: with its number what names it.
        resident: bytes of memory, without those that it shares with others where that is known.
        shared: bytes that it may share with others.
        gone: it has ended, and nobody has asked for its status yet.
    """

    parent: int
    group: int
    born: str
    resident: int
    shared: int
    gone: bool


class Watched:
    """A process that leads a group, and all that have come from it, also those that left the group.

    A process is known once it has been looked at while it was in the group or its parent was known.
    """

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self._born: dict[int, str] = {}
        self._now: dict[int, Seen] = {}

    def look(self) -> None:
        """Look at the processes of the system."""
        seen = dict(_processes())
        known = {
            n for n, p in seen.items() if self._born.get(n) == p.born or p.group == self.leader
        }
        if self.leader in seen:
            known.add(self.leader)
        children: dict[int, list[int]] = {}
        for number, process in seen.items():
            children.setdefault(process.parent, []).append(number)
        waiting = list(known)
        while waiting:
            for child in children.get(waiting.pop(), ()):
                if child not in known:
                    known.add(child)
                    waiting.append(child)
        self._now = {number: seen[number] for number in known}
        self._born = {number: process.born for number, process in self._now.items()}

    def resident(self) -> int:
        """Bytes that they have resident together, what they share counted once."""
        own = sum(process.resident for process in self._now.values())
        return own + max((process.shared for process in self._now.values()), default=0)

    def alive(self) -> bool:
        """Whether any is alive, as of now."""
        self.look()
        return any(not process.gone for process in self._now.values())

    def signal(self, number: int) -> None:
        """Send a signal to those known."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.leader, number)
        for process, seen in self._now.items():
            if not seen.gone and seen.group != self.leader:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process, number)


def _processes() -> Iterator[tuple[int, Seen]]:
    return _from_proc() if (_PROC / "self" / "stat").exists() else _from_ps()


def _from_proc() -> Iterator[tuple[int, Seen]]:
    page = os.sysconf("SC_PAGE_SIZE")
    for entry in os.listdir(_PROC):
        if not entry.isdigit():
            continue
        try:
            stat = (_PROC / entry / "stat").read_text(errors="replace")
            pages = (_PROC / entry / "statm").read_text().split()
        except OSError:
            continue  # it has just ended
        fields = stat[stat.rindex(")") + 2 :].split()  # a name may hold blanks and parentheses
        resident, shared = int(pages[1]) * page, int(pages[2]) * page
        yield (
            int(entry),
            Seen(
                int(fields[1]),
                int(fields[2]),
                fields[19],
                resident - shared,
                shared,
                fields[0] in "ZX",
            ),
        )


def _from_ps() -> Iterator[tuple[int, Seen]]:
    columns = ["ps", "-A", "-o", "pid=,ppid=,pgid=,rss=,stat=,lstart="]
    listing = subprocess.run(columns, capture_output=True, text=True, check=False).stdout
    for line in listing.splitlines():
        number, parent, group, resident, state, born = line.split(None, 5)
        yield (
            int(number),
            Seen(int(parent), int(group), born, int(resident) * 1024, 0, state.startswith("Z")),
        )
