"""Record the calls of units while a user's command runs: shapes, dtypes, and plain Python values.

Instrumented code calls the decorator `unit`. It returns its argument unchanged unless the
environment variable REMAT_MIGRATE_RECORD names the folder to record into.

Recording must neither change what the program computes nor make it fail: an error in recording is
noted, and the call continues.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import inspect
import itertools
import json
import os
import re
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from .frameworks import pure_functions
from .inputs.candidates import is_positive
from .lookup import attribute, named_arguments
from .transfer import pickling

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


# Of a unit in a process: saved cases, those of them that repeat another one with other numbers, and
# calls that are looked at.
MOST_CASES = 4
MOST_REPEATS = 2
MOST_CALLS = 100


@dataclasses.dataclass
class UnitCalls:
    """What is known of the calls of a unit in this process."""

    calls: int = 0
    cases: int = 0
    repeats: int = 0
    numbers: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    said: set[str] = dataclasses.field(default_factory=set)

    def wants(self, call: Call) -> bool:
        """Return whether a call is the first of its kind, or one of few with other numbers."""
        numbers = self.numbers.setdefault(call.kind, set())
        if call.numbers in numbers or (numbers and self.repeats >= MOST_REPEATS):
            return False
        self.repeats += bool(numbers)
        numbers.add(call.numbers)
        return True


class CallLog:
    """The recorded calls of this process."""

    def __init__(self, folder: str) -> None:
        self._root = folder
        self.restart()

    def restart(self) -> None:
        """Begin a folder of its own: at the start, and in the child after a fork."""
        self._lock = threading.RLock()
        self._folder = ""
        self._units: dict[str, UnitCalls] = {}
        self._files = 0

    def note(self, identity: str, text: str) -> None:
        """Write down why a unit is not recorded, once."""
        with self._lock:
            said = self._units.setdefault(identity, UnitCalls()).said
            if text not in said:
                said.add(text)
                self._write({"unit": identity, "note": text})

    def call(
        self, identity: str, function: Any, args: Any, kwargs: dict[str, Any], bound: int
    ) -> None:
        """Note that a unit is called, and save the call as a case if it is one of a new kind.

        `bound`: how many arguments, such as the class of a class method, the call gets besides
        those that a caller of the unit gives.
        """
        with self._lock:
            unit = self._units.setdefault(identity, UnitCalls())
            line = {"unit": identity}
            if not unit.calls:
                self._write(line)
            unit.calls += 1
            if unit.cases >= MOST_CASES or unit.calls > MOST_CALLS:
                return
            context = pure_functions.capture(args, kwargs)
            call = described(named_arguments(function, args, kwargs), context)
            if not unit.wants(call):
                return
            self._files += 1
            path = os.path.join(self._opened(), f"{self._files}.pkl")
            case = {"args": args[bound:], "kwargs": kwargs, "context": context}
            try:
                pickling.save(case, path, main=_main_module(), positive=call.positive)
            except Exception as error:  # CannotSave, a full disk, or the program's own classes
                reason = str(error) or type(error).__name__
                self._write({**line, "error": "the inputs cannot be pickled: " + reason})
                return
            unit.cases += 1
            test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
            self._write({**line, "file": path, "about": call.about, "test": test})

    def _write(self, line: dict[str, Any]) -> None:
        path = os.path.join(self._opened(), "calls.jsonl")
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _opened(self) -> str:
        if not self._folder:
            # In the order of the processes; one that calls exec keeps its id.
            folder = os.path.join(self._root, f"{time.time_ns()}-{os.getpid()}")
            os.makedirs(folder)
            self._folder = folder
        return self._folder


def _main_module() -> str | None:
    """Return the name by which another process can import the module that runs as `__main__`."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    file = getattr(main, "__file__", None)
    return os.path.splitext(os.path.basename(file))[0] if file else None


# Limits on the leaves of one argument, the text of a leaf, and the flags that are shown.
_MOST_LEAVES = 20000
_LONGEST_TEXT = 200
_MOST_FLAGS = 4

_ARRAYS = (jax.Array, np.ndarray)
_NUMBERS = (int, float, complex, np.generic)
# Their text is the same in every process.
_SHOWN = (bool, str, bytes, type(None), enum.Enum, slice, range, np.dtype, type, frozenset)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_LAST_NAME = re.compile(r"(\w+)\W*$")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_CONTEXT = "its context"


class Call(NamedTuple):
    """A call.

    Attributes:
        kind: its structure, shapes, and values that are neither numbers nor arrays.
        numbers: its Python numbers.
        about: the Python bools among its arguments: `is_training=True`.
        positive: the ids of the arrays whose names suggest positive entries.
    """

    kind: str
    numbers: str
    about: str
    positive: frozenset[int]


def described(named: dict[str, Any], context: Any) -> Call:
    """Describe a call by the arguments of its parameters, and by its context."""
    kind: list[str] = []
    numbers: list[str] = []
    flags: list[str] = []
    positive: set[int] = set()
    for path, leaf in _leaves({**named, _CONTEXT: context}, kind):
        if isinstance(leaf, _ARRAYS):
            weak = getattr(leaf, "weak_type", None)
            kind.append(f"{path}: {attribute(leaf, 'dtype')}{attribute(leaf, 'shape')}{weak}")
            name = _LAST_NAME.search(path)
            if name and is_positive(name.group(1)):
                positive.add(id(leaf))
        elif isinstance(leaf, _NUMBERS) and not isinstance(leaf, bool):
            kind.append(f"{path}: {type(leaf).__name__}")
            numbers.append(f"{path}: {leaf}")
        else:
            kind.append(f"{path}: {_text(leaf)}")
            if isinstance(leaf, bool) and not path.startswith(_CONTEXT):
                flags.append(f"{path}={leaf}")
    return Call(
        "\n".join(kind), "\n".join(numbers), ", ".join(flags[:_MOST_FLAGS]), frozenset(positive)
    )


def _leaves(named: dict[str, Any], structures: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of values with their paths; add the structures of the values."""
    for name, value in named.items():
        try:
            pairs, tree = jax.tree_util.tree_flatten_with_path(value)
        except Exception:  # keys without an order, or a custom flattening
            yield name, value
            continue
        structures.append(_ADDRESS.sub("", str(tree)))
        for place, leaf in itertools.islice(pairs, _MOST_LEAVES):
            yield name + jax.tree_util.keystr(place), leaf


def _text(value: Any) -> str:
    """Describe a leaf that is neither a number nor an array, an object by its plain attributes."""
    if isinstance(value, _SHOWN):
        return repr(value)[:_LONGEST_TEXT]
    kind = value if isinstance(value, _FUNCTIONS) else type(value)
    held = attribute(value, "__dict__", {})
    plain = [(k, v) for k, v in held.items() if isinstance(v, _SHOWN)] if held else []
    return f"{kind.__module__}.{kind.__qualname__} {plain}"[:_LONGEST_TEXT]
