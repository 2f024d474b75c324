"""The project's own tests as inputs for the units that made inputs do not exercise.

Only the old state runs, with recorders on the units; both states are then run on such calls.
A test that fails there is of no interest, so no environment has to be right for all tests.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from .command import RecordedCalls, recorded_calls, run_command
from .copies.import_names import ImportNames
from .copies.sides import Sides
from .evidence import Outcome, Unit, UnitKey, Verdict
from .options import VerifyOptions
from .recording import recorders
from .scratch import scratch_folder
from .units.project_diff import called_names, is_test_file, users_names

# Tests may name what calls a unit, or what calls that.
_RINGS = 3
# Test files that are examined, and those that run.
_MOST_EXAMINED = 80
_MOST_RUN = 16
_LEAST_SECONDS = 3.0
_PROGRAM = "from remat_migrate_worker.recording import project_tests as tests; tests.main()"


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

    @staticmethod
    def may_help(verdict: Verdict) -> bool:
        """Return whether other inputs may exercise what a verdict is about."""
        unit = verdict.unit
        weak = verdict.outcome in (Outcome.NOT_EXERCISED, Outcome.FAILS_BEFORE)
        return weak and bool(unit.qualname) and not unit.is_text

    def _record(self, sides: Sides, units: Sequence[Unit]) -> None:
        rings, files = _candidates(sides, units)
        if not files:
            self.notes.append(f"no test of the project names {_list(units)}")
            return
        folder = self._folder / str(len(self._known))
        folder.mkdir(parents=True)
        request = folder / "tests.json"
        side = sides.before.side
        text = {
            "seconds": self._left,
            "names": [sorted(ring) for ring in rings],
            "files": [str(file) for file in files],
            "paths": [str(path) for path in (*side.paths, side.copy)],
            "units": [sides.identity(unit) for unit in units],
        }
        request.write_text(json.dumps(text))
        with recorders(sides, sides.old, units):
            run = run_command(
                f"REMAT_MIGRATE_TESTS={shlex.quote(str(request))} JAX_DISABLE_MOST_OPTIMIZATIONS=1"
                f" {shlex.quote(str(side.python))} -c {shlex.quote(_PROGRAM)}",
                side,
                folder / "record",
                timeout=self._left,
                memory=sides.task.options.memory,
                record=True,
                stop=sides.stop,
            )
        self._left -= run.seconds
        calls = recorded_calls(folder / "record")
        for unit in units:
            self._known[unit.key] = calls.get(sides.identity(unit), RecordedCalls())
        reached = sum(self._known[unit.key].called for unit in units)
        done = request.with_name("tests.json.done")
        counts = json.loads(done.read_text()) if done.exists() else None
        ran = f"{counts['run']} of {counts['found']} tests" if counts else "tests"
        self.notes.append(
            f"ran {ran} in {len(files)} files of the project for inputs, in {run.seconds:.0f} s:"
            f" they call {reached} of {len(units)} units that generated inputs do not exercise"
        )


@contextmanager
def project_tests(options: VerifyOptions) -> Iterator[ProjectTests | None]:
    """Yield what runs the project's tests; None if the options forbid it or name a command."""
    if not options.project_tests or options.command:
        yield None
        return
    with scratch_folder() as folder:
        yield ProjectTests(folder, options.test_budget)


def _candidates(sides: Sides, units: Sequence[Unit]) -> tuple[list[set[str]], list[Path]]:
    """Return the names to look for, nearest first, and the test files that reach the units.

    A test may call a unit through functions of the project, whose names it then mentions.
    """
    import_names = ImportNames(sides.old.folder)
    tests = [path for path in import_names.files if is_test_file(path)]
    sources = [path for path in import_names.files if path not in set(tests)]
    rings = [set(called_names(unit.qualname for unit in units))]
    while len(rings) < _RINGS and rings[-1]:
        known = set().union(*rings)
        rings.append(set(users_names(rings[-1], sources)) - known)
    patterns = [_any_name(ring) for ring in rings if ring]
    paths = {sides.old.at(unit.path) for unit in units}
    ranked = sorted((-_score(path, patterns, paths), path) for path in tests)
    found: list[Path] = []
    for score, path in ranked[:_MOST_EXAMINED]:
        if score and len(found) < _MOST_RUN and paths & import_names.run_with(path):
            found.append(path.relative_to(sides.old.folder))
    return rings, found


def _any_name(names: Iterable[str]) -> re.Pattern[bytes]:
    return re.compile(rb"\b(?:" + b"|".join(re.escape(n.encode()) for n in sorted(names)) + rb")\b")


def _score(path: Path, patterns: Sequence[re.Pattern[bytes]], units: Iterable[Path]) -> int:
    """Return how likely a test file is to call a unit; 0 if it names nothing that does."""
    stem = path.stem.removeprefix("test_").removesuffix("_test")
    score = int(any(stem == unit.stem for unit in units))
    try:
        text = path.read_bytes()
    except OSError:
        return 0  # removed meanwhile
    for number, pattern in enumerate(patterns):
        if pattern.search(text):
            return score + 2 * (len(patterns) - number)
    return score


def _list(units: Sequence[Unit]) -> str:
    names = ", ".join(unit.qualname for unit in units[:3])
    return names + (f" and {len(units) - 3} others" if len(units) > 3 else "")
