"""The two states of a project as copies, each with a worker."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...analysis.libraries.apis import APIS, spellings
from ..evidence import Unit
from ..options import VerifyOptions
from ..session import Reply, Side, Worker
from .workspace import Workspace, make_workspace


@dataclass(frozen=True, slots=True)
class State:
    """A state of the project: its folder, with some files' bytes replaced or files taken away."""

    root: Path
    texts: Mapping[Path, bytes] = field(default_factory=dict)
    removed: Collection[Path] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be proved.

    Attributes:
        before: the project in the old API.
        after: the project as it is now, or would be.
        units: what to compare.
        python: the interpreter.
        options: see VerifyOptions.
        known: dotted names of all units of the project, for the names in a file of cases.
        unfinished: whether the new state still has applications in the old API, which nothing
            could mend: they keep the old meaning while the others are compared.
        is_same: whether both states are the same code, and a flag of JAX is all that differs.
    """

    before: State
    after: State
    units: tuple[Unit, ...]
    python: Path
    options: VerifyOptions
    known: tuple[str, ...] = ()
    unfinished: bool = False
    is_same: bool = False


def old_meaning(*, everywhere: bool = True) -> str:
    """The table for the shim: every Api of which the result means what was wrapped.

    With `everywhere=False` that is so only where today's JAX refuses the application.
    """
    apis = [
        {"names": spellings(api), "subject": api.subject, "classes": api.wraps_classes}
        for api in APIS.values()
        if api.same_function
    ]
    return json.dumps({"all": everywhere, "apis": apis})


class Sides:
    """Both copies of the project, and the workers in them.

    Attributes:
        task: what is to be proved.
        scratch: the folder that everything lies in.
        pool: two threads, so that both sides run at once.
        old: the copy in the old state.
        new: the copy in the new state.
        maker: runs the old code under the shim, and makes inputs.
        before: runs the old code: `maker`, or a worker of the baseline's interpreter.
        after: runs the new code.
    """

    def __init__(self, task: Task, scratch: Path, stack: ExitStack) -> None:
        """`stack` ends the workers."""
        self.task = task
        self.scratch = scratch
        self.pool = stack.enter_context(ThreadPoolExecutor(2))
        self._stack = stack
        self._number = 0
        name = Path(os.path.realpath(task.after.root)).name or "project"
        copies = [
            self.pool.submit(
                make_workspace, state.root, scratch / side / name, state.texts, state.removed
            )
            for side, state in (("before", task.before), ("after", task.after))
        ]
        self.old, self.new = (copy.result() for copy in copies)
        self._make_workers(task.options)

    def _make_workers(self, options: VerifyOptions) -> None:
        baseline = options.baseline_python or self.task.python
        shimmed = self._side(baseline, self.old, old_meaning())
        self.maker = self._worker(shimmed, "maker")
        self.before = self.maker
        if options.baseline_python:
            self.before = self._worker(replace(shimmed, shim=""), "baseline")
        elif self.task.is_same:
            side = replace(shimmed, shim="", flags=self.flags(on=False))
            self.before = self._worker(side, "without")
        flags = self.flags(on=True)
        side = replace(self._side(self.task.python, self.new, self.new_meaning), flags=flags)
        self.after = self._worker(side, "migrated")

    @property
    def meaning_before(self) -> str:
        """The shim for what is run in the old state."""
        as_it_is = self.task.is_same or self.task.options.baseline_python
        return "" if as_it_is else old_meaning()

    @property
    def new_meaning(self) -> str:
        """The shim for the new state."""
        return old_meaning(everywhere=False) if self.task.unfinished else ""

    def flags(self, *, on: bool) -> dict[str, bool]:
        """The settings of JAX for one side: the flag that is asked for, on or off."""
        under = self.task.options.under
        return {under: on} if under and (on or self.task.is_same) else {}

    def _side(self, python: Path, workspace: Workspace, shim: str) -> Side:
        return Side(
            python,
            workspace.root,
            workspace.folder,
            tuple(dict.fromkeys(workspace.at(p) for unit in self.task.units for p in unit.search)),
            shim,
            platform=self.task.options.platform,
        )

    def _worker(self, side: Side, name: str) -> Worker:
        options = self.task.options
        worker = Worker(side, self.scratch / name, options.timeout, options.memory)
        self._stack.callback(worker.close)
        return worker

    def ask(self, worker: Worker, unit: Unit, do: str, **request: object) -> Reply:
        """The reply of a worker to a request about a unit.

        Raises:
            WorkerEnded: see Worker.ask.
        """
        workspace = self.new if worker is self.after else self.old
        return worker.ask(
            do=do,
            module=unit.module,
            path=str(workspace.at(unit.path)),
            qualname=unit.qualname,
            **request,
        )

    def folder(self, name: str) -> str:
        """A folder that is not there yet."""
        self._number += 1
        return str(self.scratch / "cases" / f"{self._number}-{name}")

    def relative(self, path: Path) -> str:
        """A file of the project by its path from the root."""
        return os.path.relpath(path, self.new.root).replace(os.sep, "/")

    def identity(self, unit: Unit) -> str:
        """The name of a unit in recordings, the same on both sides."""
        return f"{self.relative(unit.path)}::{unit.qualname}"

    def translate(self, text: str) -> str:
        """A message with the user's paths in place of those of the copies."""
        return self.new.translate(self.old.translate(text))


def said(error: Mapping[str, Any]) -> str:
    """An exception in a line."""
    lines = error["message"].strip().splitlines()
    return f"{error['type']}: {lines[0]}" if lines else str(error["type"])
