"""Decide units in several threads; report the verdicts in the order of the units, as they come."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterable, Sequence

import psutil

from ..engine.progress import Progress
from .evidence import Unit, Verdict
from .session import RunStopped

Decide = Callable[[Unit], Verdict]
# Receives each verdict as soon as it and those of earlier units are known.
Decided = Callable[[Verdict], None]

# A second pair of workers takes seconds to start, which few units do not earn back.
_FEW_UNITS = 4
_MOST_LANES = 2
# What the workers of one unit use for an ordinary model.
_LANE_MEMORY = 4 << 30

_Result = tuple[int, Verdict | BaseException | None]


def ignore(verdict: Verdict) -> None:
    """Do nothing with a verdict."""


def lanes_for(units: int) -> int:
    """Return how many units to run at once: what cores, free memory and their number allow."""
    if units < _FEW_UNITS:
        return 1
    affinity = getattr(os, "sched_getaffinity", None)  # only on Linux
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    memory = int(psutil.virtual_memory().available) // _LANE_MEMORY
    return max(1, min(_MOST_LANES, cores, memory))


class Schedule:
    """Units and the verdicts on them so far."""

    def __init__(self, units: Sequence[Unit], decided: Decided, progress: Progress) -> None:
        self._units = units
        self._decided = decided
        self._progress = progress
        self._known: dict[int, Verdict] = {}
        self._reported = 0

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts in the order of the units; after an interrupt, any may be missing."""
        return tuple(self._known[number] for number in sorted(self._known))

    def run(self, lanes: Sequence[Decide], stop: threading.Event) -> None:
        """Decide all units, each lane one at a time.

        Args:
            lanes: each decides units in a thread of its own.
            stop: set after an interrupt or an error; lanes must then raise `RunStopped`.

        Raises:
            KeyboardInterrupt: the run was interrupted. What was decided until then is kept.
            VerificationError: a lane raised it.
        """
        # Two threads may ask at once, which a generator refuses.
        waiting = iter(tuple(enumerate(self._units)))
        results: queue.SimpleQueue[_Result] = queue.SimpleQueue()
        threads = [
            threading.Thread(target=_work, args=(decide, waiting, results, stop), daemon=True)
            for decide in lanes
        ]
        for thread in threads:
            thread.start()
        running = len(threads)
        try:
            self._progress(self._units[0].name, 0, len(self._units))
            while running:
                number, result = results.get()
                if isinstance(result, BaseException):
                    raise result
                if result is None:
                    running -= 1
                else:
                    self._keep(number, result)
        except BaseException:
            stop.set()
            raise
        finally:
            for thread in threads:
                thread.join()
            while not results.empty():
                number, result = results.get()
                if isinstance(result, Verdict):
                    self._known[number] = result
            self._report_rest()

    def _keep(self, number: int, verdict: Verdict) -> None:
        self._known[number] = verdict
        while self._reported in self._known:
            self._decided(self._known[self._reported])
            self._reported += 1
        left = next((n for n in range(len(self._units)) if n not in self._known), None)
        name = self._units[left].name if left is not None else ""
        self._progress(name, len(self._known), len(self._units))

    def _report_rest(self) -> None:
        """Report the verdicts after the first unit that was not decided."""
        for number in sorted(self._known):
            if number >= self._reported:
                self._decided(self._known[number])
        self._reported = len(self._units)


def _work(
    decide: Decide,
    waiting: Iterable[tuple[int, Unit]],
    results: queue.SimpleQueue[_Result],
    stop: threading.Event,
) -> None:
    for number, unit in waiting:
        if stop.is_set():
            return
        try:
            results.put((number, decide(unit)))
        except RunStopped:
            return
        except BaseException as error:
            results.put((number, error))
            return
    results.put((-1, None))
