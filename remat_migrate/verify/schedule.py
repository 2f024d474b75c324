"""Decide units in several threads, and report the verdicts as they come."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

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
    """Units and the verdicts on them so far."""

    def __init__(self, units: Sequence[Unit], decided: Decided, progress: Progress) -> None:
        self._units = units
        self._decided = decided
        self._progress = progress
        self._known: dict[int, Verdict] = {}

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts in the order of the units; after an interrupt, any may be missing."""
        return tuple(self._known[number] for number in sorted(self._known))

    def run(self, decide: Decide, stop: threading.Event) -> None:
        """Decide all units.

        Args:
            decide: decides a unit, in any thread.
            stop: set after an interrupt or an error; `decide` must then raise.

        Raises:
            KeyboardInterrupt: the run was interrupted. What was decided until then is kept.
            VerificationError: `decide` raised it.
        """
        with ThreadPoolExecutor(units_at_once(len(self._units))) as pool:
            numbers = {pool.submit(decide, unit): n for n, unit in enumerate(self._units)}
            try:
                self._progress(self._units[0].name, 0, len(self._units))
                for future in as_completed(numbers):
                    self._keep(numbers[future], future.result())
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                for future, number in numbers.items():
                    if number not in self._known and not (future.cancelled() or future.exception()):
                        self._keep(number, future.result())
                raise

    def _keep(self, number: int, verdict: Verdict) -> None:
        self._known[number] = verdict
        self._decided(verdict)
        left = next((n for n in range(len(self._units)) if n not in self._known), None)
        name = self._units[left].name if left is not None else ""
        self._progress(name, len(self._known), len(self._units))
