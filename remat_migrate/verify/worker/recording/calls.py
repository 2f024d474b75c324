"""The calls of units in one process: one case for each structure, shape, and flag.

`calls.jsonl` holds one JSON object per line, flushed at once, so that those of a killed process are
kept: the `unit`, the `test` that calls it, and the `file` of a case with what it is `about`, or the
`error` because of which there is none. A `note` says why a unit is not recorded at all. A forked
process begins a folder of its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from ..frameworks import pure_functions
from ..transfer import pickling
from . import kinds

# Of a unit in a process: saved cases, those of them that repeat another one with other numbers, and
# calls that cannot be saved.
MOST_CASES = 4
MOST_REPEATS = 2
MOST_UNSAVED = 20
# CPU time that recording may take: some seconds, plus a share of the elapsed time.
FREE_SECONDS = 2.0
MOST_SHARE = 0.2


@dataclasses.dataclass
class UnitCalls:
    """What is known of the calls of a unit in this process."""

    cases: int = 0
    repeats: int = 0
    unsaved: int = 0
    numbers: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    said: set[str] = dataclasses.field(default_factory=set)


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
        self._started = time.monotonic()
        self._spent = 0.0

    def has_cases(self, identity: str) -> bool:
        """Return whether a call of a unit is recorded."""
        return bool(self._unit(identity).cases)

    def note(self, identity: str, text: str) -> None:
        """Write down why a unit is not recorded, once."""
        if self._is_new(identity, text):
            self._write({"unit": identity, "note": text})

    def call(
        self, identity: str, function: Any, args: Any, kwargs: dict[str, Any], bound: int
    ) -> None:
        """Note that a unit is called, and save the call as a case if it is one of a new kind.

        `bound`: how many arguments, such as the class of a class method, the call gets besides
        those that a caller of the unit gives.
        """
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        line = {"unit": identity, "test": test}
        if self._is_new(identity, "called"):
            self._write(line)
        if self._leaves_out(identity):
            return
        with self._timed():
            context = pure_functions.capture(args, kwargs)
            call = kinds.described(_named(function, args, kwargs), context)
            if not self._wants(identity, call):
                return
            path = self._next_file()
            case = {"args": args[bound:], "kwargs": kwargs, "context": context}
            try:
                pickling.save(case, path, main=_main_module(), positive=call.positive)
            except Exception as error:  # CannotSave, a full disk, or the program's own classes
                self._unit(identity).unsaved += 1
                reason = str(error) or type(error).__name__
                self._write({**line, "error": "the inputs cannot be pickled: " + reason})
                return
            self._unit(identity).cases += 1
            self._write({**line, "file": path, "about": call.about})

    def _unit(self, identity: str) -> UnitCalls:
        with self._lock:
            return self._units.setdefault(identity, UnitCalls())

    def _is_new(self, identity: str, said: str) -> bool:
        """Return whether this is said of a unit for the first time."""
        texts = self._unit(identity).said
        with self._lock:
            is_new = said not in texts
            texts.add(said)
            return is_new

    def _leaves_out(self, identity: str) -> bool:
        """Return whether no more cases are needed, or recording takes too long."""
        unit = self._unit(identity)
        allowed = FREE_SECONDS + MOST_SHARE * (time.monotonic() - self._started)
        is_full = unit.cases >= MOST_CASES or unit.unsaved >= MOST_UNSAVED
        return is_full or self._spent > allowed

    def _wants(self, identity: str, call: kinds.Call) -> bool:
        """Return whether a call is the first of its kind, or one of few with other numbers."""
        unit = self._unit(identity)
        with self._lock:
            numbers = unit.numbers.setdefault(call.kind, set())
            if call.numbers in numbers or (numbers and unit.repeats >= MOST_REPEATS):
                return False
            unit.repeats += bool(numbers)
            numbers.add(call.numbers)
            return True

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        """Count the processor time of the block as recording time."""
        started = time.thread_time()
        try:
            yield
        finally:
            with self._lock:
                self._spent += time.thread_time() - started

    def _next_file(self) -> str:
        with self._lock:
            self._files += 1
            return os.path.join(self._opened(), f"{self._files}.pkl")

    def _write(self, line: dict[str, Any]) -> None:
        with self._lock:
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


def _named(function: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return arguments by the names of their parameters, with defaults."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError, NameError):  # it has no signature, or the call raises it again
        return {"args": args, **kwargs}
    bound.apply_defaults()
    return dict(bound.arguments)


def _main_module() -> str | None:
    """Return the name by which another process can import the module that runs as `__main__`."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    file = getattr(main, "__file__", None)
    return os.path.splitext(os.path.basename(file))[0] if file else None
