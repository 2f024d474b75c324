"""Retrace programs without callbacks, once enough of their calls are recorded.

A callback costs time even if it records nothing, and cannot be removed from a compiled program. It
is cheaper to compile a long-running program again.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, List

import jax

_seconds: List[float] = [0.0]
# Kept alive until it has been called.
_pending: List[Any] = []


@functools.lru_cache(maxsize=None)
def watch() -> None:
    """Start counting compilation time, if this JAX release reports it."""
    monitoring = getattr(jax, "monitoring", None)
    if monitoring is not None:
        monitoring.register_event_duration_secs_listener(_count)


def _count(event: str, duration: float, **about: Any) -> None:
    if event.startswith("/jax/core/compile/"):
        _seconds[0] += duration


def compiling_seconds() -> float:
    """Return the seconds spent on tracing and compiling so far; a guess if that is unknown."""
    return max(_seconds[0], 1.0)


def trace_again() -> None:
    """Have JAX forget what it has compiled, soon, and not in a callback of a running program."""
    if not hasattr(jax, "clear_caches"):
        return  # it came with jax 0.4.8
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_forget)
    _pending.append(call)
    ctypes.pythonapi.Py_AddPendingCall(call, None)


def _forget(argument: Any) -> int:
    clear: Any = jax.clear_caches
    # This runs between two instructions of the main thread.
    try:
        clear()
    except Exception as error:
        # An exception would surface in the middle of the program.
        print("remat-migrate: cannot clear the caches of JAX: {!r}".format(error))
    return 0
