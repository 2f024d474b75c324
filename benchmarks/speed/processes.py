"""Runs of programs, and what they used."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LAUNCH = Path(__file__).with_name("launch.py")


class BenchmarkError(Exception):
    """The benchmark cannot continue, for example because a command failed."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The resource usage of a run.

    Attributes:
        cpu: CPU seconds, user and system, including children.
        wall: wall seconds.
        peak: peak of resident bytes of its largest process.
    """

    cpu: float
    wall: float
    peak: int


@dataclass(frozen=True, slots=True)
class Command:
    """A command to measure.

    Attributes:
        name: name of the tool in tables.
        arguments: absolute path of the program, and its arguments.
        folder: working directory.
        variables: additional environment variables.
        before: called before each run, and not measured.
        exits: exit codes of a successful run.
    """

    name: str
    arguments: tuple[str, ...]
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] | None = None
    exits: tuple[int, ...] = (0, 1)

    @property
    def environment(self) -> dict[str, str]:
        """All environment variables, with a fixed locale and no colours."""
        return {**os.environ, "LC_ALL": "C.UTF-8", "NO_COLOR": "1", **self.variables}


def spend(command: Command) -> Spent:
    """Run a command once.

    Raises:
        BenchmarkError: the exit code is not one of `exits`.
    """
    if command.before is not None:
        command.before()
    with tempfile.TemporaryDirectory() as scratch:
        report, output, errors = (Path(scratch) / name for name in ("report", "output", "errors"))
        files = [str(report), str(output), str(errors)]
        subprocess.run(
            [sys.executable, "-I", "-S", str(LAUNCH), *files, *command.arguments],
            cwd=command.folder,
            env=command.environment,
            check=True,
        )
        code, cpu, wall, peak = report.read_text().split()
        if int(code) not in command.exits:
            said = output.read_text(errors="replace")[-2000:] + errors.read_text(errors="replace")
            raise BenchmarkError(
                f"{' '.join(command.arguments)} ended with {code}:\n{said[-4000:]}"
            )
    # Linux reports kilobytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return Spent(float(cpu), float(wall), int(peak) * unit)


def in_turn(commands: Sequence[Command], runs: int) -> list[tuple[Spent, ...]]:
    """Alternate runs of the commands, A B A B, and return the runs of each command."""
    rounds = []
    for number in range(runs):
        rounds.append([spend(command) for command in commands])
        names = ", ".join(
            f"{command.name} {spent.cpu:.2f} s"
            for command, spent in zip(commands, rounds[-1], strict=True)
        )
        print(f"  run {number + 1} of {runs}: {names}", file=sys.stderr, flush=True)
    return [tuple(column) for column in zip(*rounds, strict=True)]


def run_quietly(*arguments: str | Path, folder: Path | None = None) -> str:
    """Run a command that prepares a measurement, and return its output.

    Raises:
        BenchmarkError: the command failed.
    """
    done = subprocess.run(
        [str(argument) for argument in arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode:
        said = (done.stdout + done.stderr)[-4000:]
        raise BenchmarkError(f"{done.args} ended with {done.returncode}:\n{said}")
    return done.stdout
