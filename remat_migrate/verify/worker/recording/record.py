"""Record the calls of units while a user's command runs: shapes, dtypes, and plain Python values.

Instrumented code calls the decorator `unit`. It returns its argument unchanged unless the
environment variable REMAT_MIGRATE_RECORD names the folder to record into.

Recording must neither change what the program computes nor make it fail: an error in recording is
noted, and the call continues.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from .calls import CallLog

_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

_active = threading.local()


def unit(identity: str, bound: int) -> Callable[[Any], Any]:
    """Return a decorator that records the calls of the unit `path::qualified name`.

    `bound`: see `CallLog.call`.
    """
    log = process_log()
    if log is None:
        return lambda function: function
    return lambda function: recorded(log, identity, function, bound)


@functools.cache
def process_log() -> CallLog | None:
    """Return the log of this process, if its command is recorded."""
    folder = os.environ.get("REMAT_MIGRATE_RECORD")
    if not folder:
        return None
    log = CallLog(folder)
    # Each recursive call of a unit needs two frames instead of one.
    sys.setrecursionlimit(2 * sys.getrecursionlimit())
    os.register_at_fork(after_in_child=log.restart)
    return log


def recorded(log: CallLog, identity: str, function: Any, bound: int = 0) -> Any:
    """Return a plain function, which Flax, Haiku, Equinox, and pytest treat like the original.

    Of nested calls, the outermost is recorded. `bound`: see `CallLog.call`.
    """
    if function.__code__.co_flags & _SUSPENDED:
        log.note(identity, "is a generator or coroutine, which is not recorded")
        return function

    @functools.wraps(function)
    def recording(*args: Any, **kwargs: Any) -> Any:
        active: set[str] = _active.__dict__.setdefault("units", set())
        if identity in active:
            return function(*args, **kwargs)
        active.add(identity)
        try:
            _record(log, identity, function, bound, args, kwargs)
            return function(*args, **kwargs)
        finally:
            active.discard(identity)

    with contextlib.suppress(TypeError, ValueError, NameError):
        # Not every library follows `__wrapped__` to find the signature.
        recording.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return recording


def _record(
    log: CallLog, identity: str, unit: Any, bound: int, args: Any, kwargs: dict[str, Any]
) -> None:
    """Record a call; an error in that is none of the program."""
    try:
        try:
            log.call(identity, unit, args, kwargs, bound)
        except Exception as error:
            log.note(identity, "a call was not recorded: {!r}".format(error)[:1000])
    except Exception as error:  # a full disk: the program continues
        print("remat-migrate: recording failed: {!r}".format(error), file=sys.__stderr__)
