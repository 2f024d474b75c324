"""Decide units in several threads, and report the verdicts as they come."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import psutil

from ..engine.run import Progress
from .evidence import Unit, Verdict

Decide = Callable[[Unit], Verdict]
# Receives each verdict as soon as it is known.
Decided = Callable[[Verdict], None]

# Both sides of a single unit run at once, so few units gain nothing from a second.
_FEW_UNITS = 4
_MOST_AT_ONCE = 2
# What the processes of one unit use for an ordinary model.
_MEMORY = 4 << 30


def ignore(verdict: Verdict) -> None:
    """Do nothing with a verdict."""


def units_at_once(units: int) -> int:
    """Return how many units to run at once: what cores, free memory, and their number allow."""
    if units < _FEW_UNITS:
        return 1
    affinity = getattr(os, "sched_getaffinity", None)  # only on Linux
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(_MOST_AT_ONCE, cores, int(psutil.virtual_memory().available) // _MEMORY))


class Schedule:
    """Units and the verdicts on them so far.

    Attributes:
        verdicts: in the order of the units; after an interrupt, those on the first.
    """

    def __init__(self, units: Sequence[Unit], decided: Decided, progress: Progress) -> None:
        self.verdicts: list[Verdict] = []
        self._units = units
        self._decided = decided
        self._progress = progress

    def run(self, decide: Decide, stop: threading.Event) -> None:
        """Decide all units.

        Args:
            decide: decides a unit, in any thread.
            stop: set after an interrupt or an error; `decide` must then raise.

        Raises:
            KeyboardInterrupt: the run was interrupted. What was decided until then is kept.
            VerificationError: `decide` raised it.
        """
        names = [*(unit.name for unit in self._units), ""]
        with ThreadPoolExecutor(units_at_once(len(self._units))) as pool:
            try:
                self._progress(names[0], 0, len(self._units))
                for verdict in pool.map(decide, self._units):
                    self.verdicts.append(verdict)
                    self._decided(verdict)
                    done = len(self.verdicts)
                    self._progress(names[done], done, len(self._units))
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
