"""Record the calls of units while a user's command runs: shapes, dtypes, and plain Python values.

Instrumented code calls the decorator `unit(identity)`. It returns its argument unchanged unless the
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
import types
from collections.abc import Callable
from typing import Any

from . import pytest_fixtures
from .calls import CallLog
from .proxy import Recorded, recorded_class

_MARK = "__remat_migrate_recorded__"
_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

_active = threading.local()


def unit(identity: str) -> Callable[[Any], Any]:
    """Return a decorator that records the calls of the unit `path::qualified name`."""
    log = process_log()
    if log is None:
        return lambda function: function

    def decorate(function: Any) -> Any:
        assert log is not None
        try:
            return recorded(log, identity, function)
        except Exception as error:
            log.note(identity, "cannot be recorded: {!r}".format(error))
            return function

    return decorate


@functools.cache
def process_log() -> CallLog | None:
    """Return the log of this process, if its command is recorded."""
    folder = os.environ.get("REMAT_MIGRATE_RECORD")
    if not folder:
        return None
    log = CallLog(folder)
    # Each recursive call of a unit needs three frames instead of one.
    sys.setrecursionlimit(3 * sys.getrecursionlimit())
    os.register_at_fork(after_in_child=log.restart)
    return log


def recorded(log: CallLog, identity: str, function: Any, bound: int = 0) -> Any:
    """Return an object of the same kind as `function` that records its calls.

    `bound`: see `CallLog.call`.
    """
    if isinstance(function, staticmethod):
        return staticmethod(recorded(log, identity, function.__func__))
    if isinstance(function, classmethod):
        return classmethod(recorded(log, identity, function.__func__, 1))
    if type(function) is property:
        if function.fget is None:
            return function
        getter = recorded(log, identity, function.fget)
        return property(getter, function.fset, function.fdel, function.__doc__)
    if pytest_fixtures.replace_function(function, lambda inner: recorded(log, identity, inner)):
        return function
    if isinstance(function, type):
        log.note(identity, "is a class: only its methods are recorded")
        return function
    if not callable(function):
        log.note(identity, "is not callable: it is a {}".format(type(function).__name__))
        return function
    if getattr(function, _MARK, None) == (identity, id(function)):
        return function
    if _is_suspended(function):
        log.note(identity, "is a generator or coroutine, which is not recorded")
        return function
    if isinstance(function, types.FunctionType):
        return _function(log, identity, function, bound)
    if isinstance(function, Recorded) and function._remat_migrate_identity == identity:
        return function
    run = functools.partial(_run, log, identity, function, bound)
    return recorded_class(function)(function, run, identity)


def _is_suspended(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return bool(getattr(code, "co_flags", 0) & _SUSPENDED)


def _function(log: CallLog, identity: str, function: Any, bound: int) -> Any:
    """Return a plain function, which Flax, Haiku, Equinox, and pytest treat like the original."""

    @functools.wraps(function)
    def recording(*args: Any, **kwargs: Any) -> Any:
        return _run(log, identity, function, bound, function, args, kwargs)

    setattr(recording, _MARK, (identity, id(recording)))
    with contextlib.suppress(TypeError, ValueError, NameError):
        # Not every library follows `__wrapped__` to find the signature.
        recording.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return recording


def _run(
    log: CallLog,
    identity: str,
    unit: Any,
    bound: int,
    function: Any,
    args: Any,
    kwargs: dict[str, Any],
) -> Any:
    """Call `function`, by which the unit is called; of nested calls the outermost is recorded."""
    active: set[str] = _active.__dict__.setdefault("units", set())
    if identity in active:
        return function(*args, **kwargs)
    active.add(identity)
    try:
        _record(log, identity, unit, bound, args, kwargs)
        return function(*args, **kwargs)
    finally:
        active.discard(identity)


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
