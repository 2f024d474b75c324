"""The conditions under which a case is evaluated again.

- "again": the old code alone, with other seeds of Python and NumPy, and the clock ahead. Results
  that change depend on random numbers without a seed, on the time, or on what an earlier run left,
  so that they say nothing about the new code.
- "dissolved": both sides without checkpoints, because these change what XLA compiles together.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any, ContextManager, Iterator

from .. import jax_internals

AGAIN, DISSOLVED = "again", "dissolved"

# Not a multiple of a second, minute or day.
_AHEAD_NANOSECONDS = 123_456_789_123


def condition(name: str) -> ContextManager[Any]:
    """Evaluate under a condition; an empty name is none."""
    if name == AGAIN:
        return _clock_ahead()
    return jax_internals.dissolved() if name == DISSOLVED else contextlib.nullcontext()


@contextlib.contextmanager
def _clock_ahead() -> Iterator[None]:
    seconds, nanoseconds = time.time, time.time_ns
    time.time = lambda: seconds() + _AHEAD_NANOSECONDS / 1e9
    time.time_ns = lambda: nanoseconds() + _AHEAD_NANOSECONDS
    try:
        yield
    finally:
        time.time, time.time_ns = seconds, nanoseconds
