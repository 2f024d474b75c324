"""The project's own tests as inputs for the units that made inputs do not exercise.

Only the old state runs, with recorders on the units; both states are then run on such calls.
A test that fails there is of no interest, so no environment has to be right for all tests.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..analysis.names.expected_failures import is_test
from .command import RecordedCalls, recorded_calls, run_command
from .copies.import_names import ImportNames
from .copies.sides import Sides
from .evidence import Unit, UnitKey
from .options import VerifyOptions
from .recording import recorders
from .scratch import scratch_folder

# Test files that run.
_MOST_RUN = 16
_LEAST_SECONDS = 3.0
# The user's options may ask for plug-ins that are not installed, for coverage, or for processes
# that are not recorded; warnings of another JAX are not errors.
_PYTEST = (
    "-m pytest -q -o addopts= -o filterwarnings= -p no:cacheprovider -p no:xdist -p no:randomly"
    " --continue-on-collection-errors"
)


class ProjectTests:
    """Runs tests for units, each at most once, and keeps the recorded calls.

    Attributes:
        notes: how many tests ran, and what they reached.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self.notes: list[str] = []
        self._folder = folder
        self._left = seconds
        self._known: dict[UnitKey, RecordedCalls] = {}

    def recorded(self, sides: Sides, units: Sequence[Unit]) -> Mapping[UnitKey, RecordedCalls]:
        """Return the recorded calls of those units that tests call."""
        new = [unit for unit in units if unit.key not in self._known]
        if new and self._left > _LEAST_SECONDS:
            self._known |= {unit.key: RecordedCalls() for unit in new}
            self._record(sides, new)
        known = {unit.key: self._known.get(unit.key) for unit in units}
        return {key: calls for key, calls in known.items() if calls and calls.called}

    def _record(self, sides: Sides, units: Sequence[Unit]) -> None:
        files = _test_files(sides, units)
        if not files:
            names = _list(unit.qualname for unit in units)
            self.notes.append(f"no test of the project imports {names}")
            return
        folder = self._folder / str(len(self._known))
        side = sides.before.side
        paths = os.pathsep.join(map(str, (*side.paths, side.copy)))
        named = " ".join(shlex.quote(str(file)) for file in files)
        with recorders(sides, units):
            run = run_command(
                f"PYTHONPATH={shlex.quote(paths)} REMAT_MIGRATE_TESTS=1"
                f" JAX_DISABLE_MOST_OPTIMIZATIONS=1 {shlex.quote(str(side.python))} {_PYTEST}"
                f" {named}",
                side,
                folder,
                timeout=self._left,
                memory=sides.task.options.memory,
                record=True,
                stop=sides.stop,
            )
        self._left -= run.seconds
        if "No module named pytest" in run.output_tail:
            self.notes.append(f"no tests ran to record inputs: {side.python} has no pytest")
            return
        calls = recorded_calls(folder)
        for unit in units:
            self._known[unit.key] = calls.get(sides.identity(unit), RecordedCalls())
        reached = sum(self._known[unit.key].called for unit in units)
        self.notes.append(
            f"ran {_list(map(str, files))} ({run.seconds:.0f} s) to record inputs: called {reached}"
            f" of {len(units)} units that generated inputs did not exercise"
        )


@contextmanager
def project_tests(options: VerifyOptions) -> Iterator[ProjectTests | None]:
    """Yield what runs the project's tests; None if the options forbid it or name a command."""
    if not options.project_tests or options.command:
        yield None
        return
    with scratch_folder() as folder:
        yield ProjectTests(folder, options.test_budget)


def _test_files(sides: Sides, units: Sequence[Unit]) -> list[Path]:
    """Return the test files that import the modules of units, those that name a unit first."""
    import_names = ImportNames(sides.old.folder)
    modules = {sides.old.at(unit.path) for unit in units}
    names = "|".join(re.escape(unit.qualname.rpartition(".")[2]) for unit in units)
    named = re.compile(rb"\b(?:" + names.encode() + rb")\b")
    found = []
    for path in import_names.files:
        if is_test(path) and modules & import_names.run_with(path):
            with suppress(OSError):  # removed meanwhile
                stem = path.stem.removeprefix("test_").removesuffix("_test")
                is_near = any(stem == module.stem for module in modules)
                found.append((not named.search(path.read_bytes()), not is_near, path))
    return [path.relative_to(sides.old.folder) for *_, path in sorted(found)[:_MOST_RUN]]


def _list(names: Iterable[str]) -> str:
    first, *rest = names
    return ", ".join([first, *rest[:2]]) + (f" and {len(rest) - 2} others" if rest[2:] else "")
