"""Decide units in several threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import psutil

from ..engine.run import Progress
from .evidence import Unit, Verdict

# Both sides of a single unit run at once, so few units gain nothing from a second.
_FEW_UNITS = 4
_MOST_AT_ONCE = 2
# What the processes of one unit use for an ordinary model.
_MEMORY = 4 << 30


def _units_at_once(units: int) -> int:
    """Return how many units to run at once: what cores, free memory, and their number allow."""
    if units < _FEW_UNITS:
        return 1
    affinity = getattr(os, "sched_getaffinity", None)  # only on Linux
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(_MOST_AT_ONCE, cores, int(psutil.virtual_memory().available) // _MEMORY))


def decide_all(
    units: Sequence[Unit],
    decide: Callable[[Unit], Verdict],
    verdicts: list[Verdict],
    progress: Progress,
    stop: threading.Event,
) -> None:
    """Decide units, and append the verdicts in their order.

    Args:
        units: the units.
        decide: decides a unit, in any thread.
        verdicts: gets the verdicts; after an interrupt, it has those on the first units.
        progress: receives progress reports.
        stop: set after an interrupt or an error; `decide` must then raise.

    Raises:
        KeyboardInterrupt: the run was interrupted.
        VerificationError: `decide` raised it.
    """
    names = [*(unit.name for unit in units), ""]
    with ThreadPoolExecutor(_units_at_once(len(units))) as pool:
        try:
            progress(names[0], 0, len(units))
            for done, verdict in enumerate(pool.map(decide, units), 1):
                verdicts.append(verdict)
                progress(names[done], done, len(units))
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
