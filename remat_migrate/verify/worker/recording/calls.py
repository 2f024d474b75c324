"""The calls of units in one process: one case for each structure, shape, and flag.

`calls.jsonl` holds one JSON object per line, flushed at once, so that those of a killed process are
kept: the `unit`, and the `file` of a case with what it is `about` and the `test` that calls it, or
the `error` because of which there is none. A `note` says why a unit is not recorded at all. A
forked process begins a folder of its own.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import threading
import time
from typing import Any

from ..frameworks import pure_functions
from ..lookup import named_arguments
from ..transfer import pickling
from . import kinds

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

    def wants(self, call: kinds.Call) -> bool:
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
            call = kinds.described(named_arguments(function, args, kwargs), context)
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
