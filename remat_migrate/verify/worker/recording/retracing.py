"""Programs that are traced once more, after what was to be recorded of them has been recorded.

A callback costs a running program time even if it records nothing, and nothing takes it out of a
compiled program. A program that runs for long is better off when it is compiled again without.
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
    """Count from now on what compiling costs, where this JAX tells."""
    monitoring = getattr(jax, "monitoring", None)
    if monitoring is not None:
        monitoring.register_event_duration_secs_listener(_count)


def _count(event: str, duration: float, **about: Any) -> None:
    if event.startswith("/jax/core/compile/"):
        _seconds[0] += duration


def compiling_seconds() -> float:
    """What tracing and compiling has taken so far; where it is not known a guess."""
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
    # Between two instructions of the main thread.
    try:
        clear()
    except Exception as error:
        # A pending call must not raise into whatever the program is doing.
        print("remat-migrate: the caches of JAX cannot be cleared: {!r}".format(error))
    return 0
