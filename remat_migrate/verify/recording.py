"""The user's command, run in both copies with recorders around the units."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SourceError, VerificationError
from ..text import read_source
from .command import CommandRun, run_command
from .copies.sides import Sides, said
from .copies.workspace import Workspace
from .evidence import CommandRuns
from .instrument import instrument
from .session import WorkerEnded

_TAIL_LINES = 12
# Seconds that comparing two recordings may take.
_COMPARING = 600.0


@dataclass(frozen=True, slots=True)
class Recording:
    """What a command showed.

    Attributes:
        runs: how it ended.
        events: by identity of a unit, how its recorded calls compare.
        cases: by identity of a unit, the recorded inputs, as `serve` describes cases.
    """

    runs: CommandRuns
    events: Mapping[str, Mapping[str, Any]]
    cases: Mapping[str, Mapping[str, Any]]


def record(sides: Sides, command: str) -> Recording:
    """Run the command in both copies at once and compare what the units were given and returned.

    Raises:
        VerificationError: it fails before it reaches a unit.
    """
    originals = {copy: _instrument(sides, copy) for copy in (sides.old, sides.new)}
    stop = threading.Event()
    runs = [
        sides.pool.submit(_run, sides, command, side, copy, stop)
        for side, copy in (("before", sides.old), ("after", sides.new))
    ]
    try:
        before, after = (run.result() for run in runs)
    finally:
        # An interrupt reaches this process alone.
        stop.set()
    for texts in originals.values():
        for path, data in texts.items():
            path.write_bytes(data)
    if before.status != 0 and not before.events:
        raise VerificationError(
            f"the command `{command}` failed before it reached any code to compare"
            f" ({_ending(before)}); nothing was changed. It runs in a copy of the project, with"
            f" the bin folder of {sides.task.python} first on PATH. It said last:\n"
            + _last_lines(sides.old, before)
            + _lacking(sides, before)
        )
    wrong = ""
    if before.status != after.status:
        wrong = f"it ended with {_ending(after)}, was {_ending(before)}; it said last:\n"
        wrong += _last_lines(sides.new, after)
    seconds = (before.seconds, after.seconds)
    compared = _compared(sides)
    return Recording(
        CommandRuns(command, before.status, after.status, wrong, seconds, before.events),
        compared["units"],
        compared["cases"],
    )


def _instrument(sides: Sides, copy: Workspace) -> dict[Path, bytes]:
    """Put recorders into a copy. Returns what the files held."""
    by_path: dict[Path, list[str]] = {}
    for unit in sides.task.units:
        if unit.qualname:
            by_path.setdefault(unit.path, []).append(unit.qualname)
    originals = {}
    for path, names in by_path.items():
        place = copy.at(path)
        try:
            data = place.read_bytes()
            source = read_source(place, data)
        except (OSError, SourceError):
            continue  # the verdict of its units says what is the matter with the file
        new = instrument(source.text, names, sides.relative(path))
        originals[place] = data
        place.write_bytes(source.encode(new))
    return originals


def _run(
    sides: Sides, command: str, side: str, copy: Workspace, stop: threading.Event
) -> CommandRun:
    options = sides.task.options
    old = side == "before"
    baseline = options.baseline_python if old else None
    return run_command(
        command,
        copy.folder,
        copy.root,
        baseline or sides.task.python,
        sides.scratch / f"{side}-record",
        sides.meaning_before if old else sides.new_meaning,
        options.platform,
        options.command_timeout,
        options.memory,
        {} if baseline else sides.flags(on=not old),
        cases=old,
        stop=stop,
    )


def _compared(sides: Sides) -> Mapping[str, Any]:
    try:
        reply = sides.after.ask_within(
            _COMPARING,
            {
                "do": "events",
                "before": str(sides.scratch / "before-record"),
                "after": str(sides.scratch / "after-record"),
                "tolerances": dict(sides.task.options.tolerance),
            },
        )
    except WorkerEnded as error:
        raise VerificationError(f"comparing the recordings: the worker {error}") from error
    if "error" in reply:
        raise VerificationError(f"the recordings cannot be compared: {said(reply['error'])}")
    return reply


def _lacking(sides: Sides, run: CommandRun) -> str:
    """The files that are new since the base and that the command speaks of."""
    names = sorted(sides.relative(path) for path in sides.task.before.removed)
    spoken = [name for name in names if name in run.output_tail]
    return f"\nThe base has no {', '.join(spoken)}." if spoken else ""


def _ending(run: CommandRun) -> str:
    if run.timed_out:
        return f"no end within {run.seconds:.0f} s"
    if run.killed_for_memory:
        return "more memory than it may use"
    return f"exit status {run.status}"


def _last_lines(copy: Workspace, run: CommandRun) -> str:
    lines = copy.translate(run.output_tail).rstrip().splitlines()[-_TAIL_LINES:]
    return "\n".join("  " + line for line in lines)
