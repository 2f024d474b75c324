"""The conditions under which a case is evaluated again.

- "again": the old code alone, with other seeds of Python and NumPy, and the clock ahead. Results
  that change depend on random numbers without a seed, on the time, or on what an earlier run left,
  so that they say nothing about the new code.
- "dissolved": both sides without checkpoints, because these change what XLA compiles together.
- "returned": what edited checkpoints return is changed, see `applications.moving`.
"""

from __future__ import annotations

import contextlib
import time
from typing import Iterator, List

from .. import applications, jax_internals

AGAIN, DISSOLVED, RETURNED = "again", "dissolved", "returned"

# Not a multiple of a second, minute or day.
_AHEAD_NANOSECONDS = 123_456_789_123


@contextlib.contextmanager
def condition(name: str) -> Iterator[List[str]]:
    """Evaluate under a condition; an empty name is none.

    Gives the checkpoints whose results were changed.
    """
    moved: List[str] = []
    with contextlib.ExitStack() as stack:
        if name == AGAIN:
            stack.enter_context(_clock_ahead())
        elif name == DISSOLVED:
            stack.enter_context(jax_internals.dissolved())
        elif name == RETURNED:
            moved = stack.enter_context(applications.moving())
        yield moved


@contextlib.contextmanager
def _clock_ahead() -> Iterator[None]:
    seconds, nanoseconds = time.time, time.time_ns
    time.time = lambda: seconds() + _AHEAD_NANOSECONDS / 1e9
    time.time_ns = lambda: nanoseconds() + _AHEAD_NANOSECONDS
    try:
        yield
    finally:
        time.time, time.time_ns = seconds, nanoseconds
