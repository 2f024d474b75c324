"""The folder where a process of the recorded command writes its events and cases.

`events.jsonl` holds one JSON object per line, each flushed at once, so that the events of a killed
process are kept. The kinds are `process` (the first line), `call`, `trace`, `note`, `cut` (later
calls of a unit are missing), and finally `count`. A forked process starts a new folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import threading
import time
from typing import Any, Dict, Iterator, Optional, Set, Tuple

MOST_EVENTS = 500  # of a unit in a process
MOST_CASES = 4
MOST_UNSAVED = 20
MOST_CASE_BYTES = 64 << 20
MOST_NOTES = 20
# Approximate seconds that a callback costs a program even if it records nothing.
CALLBACK_SECONDS = 1.5e-4
# Callbacks that record nothing may cost this share of the time spent on tracing and compiling; then
# the program is retraced without them.
MOST_IDLE_SHARE = 0.3
# CPU time that recording may take: some seconds, plus a share of the elapsed time.
FREE_SECONDS = 2.0
MOST_SHARE = 0.2


class UnitLog:
    """What is recorded of one unit in this process."""

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.calls = 0
        self.events = 0
        self.cases = 0
        self.case_bytes = 0
        self.unsaved = 0
        self.seen: Dict[str, Set[str]] = {}
        self.repeats = 0
        self.once: Set[bytes] = set()
        self.notes: Set[str] = set()
        self.cut = False


class EventLog:
    """The events of this process. Nothing slow, and nothing that waits for JAX, holds the lock."""

    def __init__(self, folder: str, with_cases: bool = True) -> None:
        self.root = folder
        self.with_cases = with_cases
        self.restart()

    def restart(self) -> None:
        """Begin a folder of its own: at the start, and in the child after a fork."""
        self.lock = threading.RLock()
        self.folder: Optional[str] = None
        self.units: Dict[str, UnitLog] = {}
        self.threads: Dict[int, int] = {}
        self.written = 0
        self.traces = 0
        self.started = time.monotonic()
        self.spent = 0.0
        self.idle = 0
        self.over: Set[str] = set()

    def unit(self, identity: str) -> UnitLog:
        """Return the log of a unit."""
        with self.lock:
            return self.units.setdefault(identity, UnitLog(identity))

    def leaves_out(self, identity: str, calls: int = 1) -> bool:
        """Return whether to only count calls: there were too many, or recording takes too long."""
        log = self.unit(identity)
        with self.lock:
            allowed = FREE_SECONDS + MOST_SHARE * (time.monotonic() - self.started)
            if log.events < MOST_EVENTS and self.spent <= allowed:
                return False
            log.calls += calls
            self.idle += calls
            if not log.cut:
                log.cut = True
                self._write({"kind": "cut", "unit": identity})
            return True

    def is_over(self, identity: str) -> bool:
        """Return whether calls of a unit are neither recorded nor counted any longer."""
        return identity in self.over

    def give_up(self, compiling: float) -> bool:
        """Return whether to retrace programs without the callbacks that no longer record anything.

        Args:
            compiling: seconds that this process has spent on tracing and compiling so far.

        Returns:
            True once: from then on the units that have had all their events are `is_over`.
        """
        with self.lock:
            if self.idle * CALLBACK_SECONDS <= MOST_IDLE_SHARE * compiling:
                return False
            full = {name for name, log in self.units.items() if log.events >= MOST_EVENTS}
            self.idle = 0
            if full <= self.over:
                return False
            self.over |= full
            return True

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Count the processor time of the block as recording time."""
        started = time.thread_time()
        try:
            yield
        finally:
            with self.lock:
                self.spent += time.thread_time() - started

    def has_all_cases(self, identity: str) -> bool:
        """Return whether no more cases of a unit are saved."""
        return not self.with_cases or self.unit(identity).cases >= MOST_CASES

    def trace(self, identity: str) -> int:
        """Write down that a call was traced; its number, which the calls of the program carry."""
        with self.lock:
            self.traces += 1
            self._write({"kind": "trace", "unit": identity, "trace": self.traces})
            return self.traces

    def call(self, identity: str, event: Dict[str, Any], once: bool) -> None:
        """Write a call. `once`: unless the same values have been written for the unit already."""
        log = self.unit(identity)
        values = json.dumps([event["in"], event["out"]]).encode() if once else b""
        key = hashlib.blake2b(values, digest_size=16).digest()
        with self.lock:
            log.calls += 1
            if once and key in log.once:
                return
            if once:
                log.once.add(key)
            log.events += 1
            thread = self.threads.setdefault(threading.get_ident(), len(self.threads))
            test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
            about = {"test": test} if test else {}
            self._write({"kind": "call", "unit": identity, "thread": thread, **about, **event})

    def note(self, identity: str, text: str) -> None:
        """Write down why something of a unit was not recorded, once."""
        log = self.unit(identity)
        with self.lock:
            if text not in log.notes and len(log.notes) < MOST_NOTES:
                log.notes.add(text)
                self._write({"kind": "note", "unit": identity, "text": text})

    def case_file(self, identity: str, signature: Tuple[str, str], size: int) -> Optional[str]:
        """Return where to save the inputs of a call of `size` bytes; None if they are not needed.

        Wanted are the first call of each structure with its shapes and static values, two that
        differ in Python numbers alone, and one that differs in the entries of arrays alone.
        """
        log = self.unit(identity)
        with self.lock:
            numbers = log.seen.setdefault(signature[0], set())
            if not numbers:
                repeats = 0
            elif signature[1] not in numbers:
                repeats = 1
            else:
                repeats = 2
            numbers.add(signature[1])
            if not self.with_cases or log.cases >= MOST_CASES or log.repeats + repeats > 2:
                return None
            if log.case_bytes + size > MOST_CASE_BYTES:
                return None
            log.repeats += repeats
            log.cases += 1
            log.case_bytes += size
            number = sum(unit.cases + unit.unsaved for unit in self.units.values())
            return os.path.join(self._opened(), "cases", "{}.pkl".format(number))

    def not_saved(self, identity: str, size: int) -> None:
        """Let another call be saved in place of one whose inputs cannot be."""
        log = self.unit(identity)
        with self.lock:
            log.unsaved += 1
            if log.unsaved <= MOST_UNSAVED:
                log.cases -= 1
                log.case_bytes -= size

    def relative(self, path: str) -> str:
        """Return the path by which events name a file of this process."""
        return os.path.relpath(path, self._opened()).replace(os.sep, "/")

    def close(self) -> None:
        """Write the counts. More may follow: host callbacks run until the very end."""
        with self.lock:
            for log in self.units.values():
                if log.calls:
                    counts = {"calls": log.calls, "events": log.events}
                    self._write({"kind": "count", "unit": log.identity, **counts})

    def _write(self, line: Dict[str, Any]) -> None:
        line["n"] = self.written
        self.written += 1
        with open(os.path.join(self._opened(), "events.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=True) + "\n")

    def _opened(self) -> str:
        if self.folder is None:
            for attempt in range(1000):  # a process that calls exec keeps its id
                name = str(os.getpid()) if not attempt else "{}-{}".format(os.getpid(), attempt)
                folder = os.path.join(self.root, name)
                try:
                    os.makedirs(folder)
                except FileExistsError:
                    continue
                self.folder = folder
                break
            else:
                raise OSError(
                    "cannot create a folder for the events of process {}".format(os.getpid())
                )
            self._write({"kind": "process", **process()})
        return self.folder


def process() -> Dict[str, Any]:
    """Return the arguments of this process, when it began to record, and where it imports from."""
    copy = os.environ.get("REMAT_MIGRATE_COPY")
    return {
        "argv": [str(each) for each in getattr(sys, "argv", [])][:50],
        "time": time.time(),
        "parent": os.getppid(),
        "main": main_module(),
        "path": [_inside(entry, copy) for entry in sys.path if copy and _is_inside(entry, copy)],
    }


def main_module() -> Optional[str]:
    """Return the name by which another process can import the module that runs as `__main__`."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    file = getattr(main, "__file__", None)
    return os.path.splitext(os.path.basename(file))[0] if file else None


def _is_inside(entry: str, folder: str) -> bool:
    path = os.path.realpath(entry or os.getcwd())
    return (path + os.sep).startswith(os.path.realpath(folder) + os.sep)


def _inside(entry: str, folder: str) -> str:
    path = os.path.realpath(entry or os.getcwd())
    return os.path.relpath(path, os.path.realpath(folder)).replace(os.sep, "/")
