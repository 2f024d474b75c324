"""Copies of the two states of a project, with the workers that run them."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import os
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Literal

from ...discovery.file_kinds import is_python
from ...libraries.apis import APIS, spellings
from ...text import read_source
from ..evidence import Executed, Unit, UnitKey
from ..executed import Spots
from ..options import VerifyOptions
from ..session import Reply, Side, Worker
from ..units.outline import outline
from .workspace import Workspace, make_workspace

Reason = Mapping[str, str]

# Imported once for all units, since they take long and start no backend.
_LIBRARIES = ("flax", "haiku", "equinox", "optax")


@dataclass(frozen=True, slots=True)
class State:
    """A state of the project: its folder, with some files replaced or removed."""

    root: Path
    texts: Mapping[Path, bytes] = field(default_factory=dict)
    removed: Collection[Path] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """What to compare, and how.

    Attributes:
        before: the project in the old API.
        after: the project as it is now, or would be with fixes.
        units: the units to compare.
        python: the interpreter.
        options: how to verify.
        known: dotted names of all units of the project, to check the file of cases.
        unfinished: the sites of the new state that are still in the old API because no fix could
            change them: file, first and last line. They keep their old meaning while the others are
            compared.
        callers: units that use those to compare. They run if what they use is not exercised alone.
        is_partial: whether other code, such as files that were not linted, may be in the old API
            and keeps its old meaning.
    """

    before: State
    after: State
    units: tuple[Unit, ...]
    python: Path
    options: VerifyOptions
    known: tuple[str, ...] = ()
    unfinished: tuple[tuple[Path, int, int], ...] = ()
    callers: tuple[Unit, ...] = ()
    is_partial: bool = False

    @property
    def all_units(self) -> tuple[Unit, ...]:
        """The units to compare, and those that may run for them."""
        return (*self.units, *self.callers)


def shim_table(
    replaced: Literal["all", "refused", "none"] = "all",
    leftover: Sequence[tuple[str, int, int]] | None = (),
) -> str:
    """Return the shim's table: every Api whose result computes what the wrapped function does.

    Args:
        replaced: which sites get the old meaning: all, those that current JAX rejects, or none.
        leftover: edited code that may still be rejected: path, first and last line; None for all.
    """
    apis = [
        {"names": spellings(api), "subject": api.subject, "classes": api.wraps_classes}
        for api in APIS.values()
        if api.same_function
    ]
    return json.dumps({"replace": replaced, "apis": apis, "leftover": leftover})


class Sides:
    """Both copies of the project, and their workers.

    Attributes:
        task: what to compare.
        scratch: the folder of the copies and of all other files.
        substitutes: for the old and the new code of each unit, what stands in for what.
        pool: two threads, to run both sides at once.
        stop: set it to end the requests and commands that run in other threads.
        old: the copy in the old state.
        new: the copy in the new state.
        before: runs the old code without checkpoints, and makes inputs.
        after: runs the new code.
        written: runs the old code with the checkpoints that current JAX accepts.
    """

    def __init__(self, task: Task, scratch: Path, stack: ExitStack) -> None:
        """Make the copies. The workers end when `stack` is closed."""
        self.task = task
        self.scratch = scratch
        self.substitutes: defaultdict[tuple[UnitKey, bool], dict[str, Reason]] = defaultdict(dict)
        self.pool = stack.enter_context(ThreadPoolExecutor(2))
        self.stop = threading.Event()
        self._numbers = itertools.count(1)
        name = Path(os.path.realpath(task.after.root)).name or "project"
        copies = [
            self.pool.submit(
                make_workspace, state.root, scratch / side / name, state.texts, state.removed
            )
            for side, state in (("before", task.before), ("after", task.after))
        ]
        self.old, self.new = (made.result() for made in copies)
        self._spots = {
            self.old: Spots((unit.path, spot) for unit in task.all_units for spot in unit.before),
            self.new: Spots((unit.path, spot) for unit in task.all_units for spot in unit.after),
        }
        self.before = self._worker(stack, self.old, shim_table(), "before")
        self.after = self._worker(stack, self.new, self.shim_after, "after")
        self.written = self._worker(stack, self.old, shim_table("refused", None), "written")
        stack.callback(self.stop.set)  # called first
        for worker in (self.after, self.before):
            self.pool.submit(worker.start)

    @contextmanager
    def for_unit(self) -> Iterator[Sides]:
        """Yield the same copies with processes of their own, which end with the block."""
        assert self.shared_names is not None  # found once for all copies
        own = copy.copy(self)
        own.before, own.after = self.before.forked(), self.after.forked()
        own.written = self.written.forked()
        try:
            yield own
        finally:
            for worker in (own.before, own.after, own.written):
                worker.close()

    @property
    def shim_after(self) -> str:
        """The shim's table for the new state."""
        leftover = [(str(self.new.at(p)), a, b) for p, a, b in self.task.unfinished]
        return shim_table("refused" if self.task.is_partial else "none", leftover)

    def _worker(self, stack: ExitStack, workspace: Workspace, shim: str, name: str) -> Worker:
        options = self.task.options
        pieces = self._spots[workspace].pieces
        rows = [(str(workspace.at(path)), *astuple(spot)) for path, spot in pieces]
        side = Side(
            self.task.python,
            workspace.root,
            workspace.folder,
            tuple(
                dict.fromkeys(workspace.at(p) for unit in self.task.all_units for p in unit.search)
            ),
            shim,
            json.dumps(rows),
            libraries=self._libraries(workspace),
            platform=options.platform,
        )
        folder = self.scratch / name
        worker = Worker(side, folder, options.timeout, options.memory, stop=self.stop)
        stack.callback(worker.close)
        return worker

    def _libraries(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the libraries of JAX that files of units name."""
        places = {workspace.at(unit.path) for unit in self.task.all_units}
        texts = [place.read_bytes() for place in places if place.is_file()]
        return tuple(name for name in _LIBRARIES if any(name.encode() in text for text in texts))

    def ask(self, worker: Worker, unit: Unit, do: str, **request: object) -> Reply:
        """Return a worker's reply to a request about a unit.

        Raises:
            WorkerEnded: see Worker.ask.
        """
        workspace = self.new if worker is self.after else self.old
        reply = worker.ask(
            do=do,
            module=unit.module,
            path=str(workspace.at(unit.path)),
            qualname=unit.qualname,
            **request,
        )
        reasons = reply.get("environment", {}).get("reasons", ())
        found = self.substitutes[unit.key, worker is self.after]
        found.update({reason["name"]: reason for reason in reasons})
        return reply

    def substituted(self, unit: Unit) -> tuple[str, ...]:
        """Return the substitutes that a unit depends on: `torch (not installed)`."""
        found = self.substitutes[unit.key, False] | self.substitutes[unit.key, True]
        return tuple(f"{name} {found[name]['text']}" for name in sorted(found))

    def fails_only_after(self, unit: Unit) -> str:
        """Describe a statement that fails on import in the new code only; empty if none does."""
        old, new = self.substitutes[unit.key, False], self.substitutes[unit.key, True]
        for name, reason in new.items():
            if reason["kind"] == "failed" and name not in old:
                return f"importing it: {name} {reason['text']}"
        return ""

    @functools.cached_property
    def shared_names(self) -> dict[str, list[str]]:
        """The names that both versions of each edited file define, by path from the root."""
        found = {}
        for path in filter(is_python, {unit.path for unit in self.task.all_units}):
            places = [workspace.at(path) for workspace in (self.old, self.new)]
            old, new = (outline(read_source(p, p.read_bytes()).text).names for p in places)
            found[self.relative(path)] = sorted(old & new)
        return found

    def executed(self, worker: Worker, reply: Reply) -> Executed:
        """Return the edited code that a worker executed for a reply."""
        workspace = self.new if worker is self.after else self.old
        return self._spots[workspace].executed(reply["executed"])

    def folder(self, name: str) -> str:
        """Return the path of a new folder."""
        return str(self.scratch / "cases" / f"{next(self._numbers)}-{name}")

    def relative(self, path: Path) -> str:
        """Return the path of a file from the project's root."""
        return os.path.relpath(path, self.new.root).replace(os.sep, "/")

    def identity(self, unit: Unit) -> str:
        """Return the unit's identity in recordings, the same on both sides."""
        return f"{self.relative(unit.path)}::{unit.qualname}"

    def translate(self, text: str) -> str:
        """Return a message with the user's paths in place of those of the copies."""
        return self.new.translate(self.old.translate(text))


def needed(reply: Reply) -> str:
    """Return why a unit cannot run that has computed with stand-ins; empty if it has not."""
    touched = reply["environment"]["touched"]
    reasons = ", ".join(f"{reason['name']} {reason['text']}" for reason in touched)
    return f"it needs {reasons}" if reasons else ""
