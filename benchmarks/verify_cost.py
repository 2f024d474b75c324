"""Measure the cost of `--verify`: its wall time relative to two runs of the command alone.

    python benchmarks/verify_cost.py PROJECT "COMMAND" [--rounds 3] [--python PATH]

    python benchmarks/verify_cost.py fixtures/old_trainer "pytest -q tests"
    python benchmarks/verify_cost.py fixtures/old_trainer "python -m trainer.train --steps 4000"

A project that uses the old API does not run, so both runs alone use the migrated project. In each
round, one runs before `remat-migrate --fix --verify --command COMMAND` and one after it, so that
other load on the machine affects both. Needs remat-migrate in the interpreter that runs this, and
jax and the imports of the project in it or in `--python`. Also shows CPU time: `--verify` runs both
sides at once, which needs two cores.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

TOOL = (sys.executable, "-m", "remat_migrate")


class Spent(NamedTuple):
    """Wall and CPU seconds."""

    wall: float
    processor: float


def main() -> None:
    """Measure, and print a line for each round."""
    parser = argparse.ArgumentParser(description="Measure the cost of --verify.")
    parser.add_argument("project", type=Path)
    parser.add_argument("command")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    given = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as scratch:
        migrated = copy(given.project, Path(scratch) / "migrated")
        run([*TOOL, "--fix", str(migrated)])
        for number in range(given.rounds):
            tried = copy(given.project, Path(scratch) / f"tried-{number}")
            first = alone(given.command, migrated, given.python)
            named = ["--python", str(given.python), "--command", given.command]
            verified = run([*TOOL, "--fix", "--verify", *named, str(tried)])
            second = alone(given.command, migrated, given.python)
            both = Spent(*map(sum, zip(first, second, strict=True)))
            ratios.append(verified.wall / both.wall)
            print(
                f"round {number + 1}: alone {first.wall:.1f} s and {second.wall:.1f} s,"
                f" --verify {verified.wall:.1f} s: {ratios[-1]:.2f}"
                f" (CPU time: {verified.processor / both.processor:.2f})",
                flush=True,
            )
    print(f"median ratio {statistics.median(ratios):.2f}")


def copy(project: Path, folder: Path) -> Path:
    """Copy the project."""
    shutil.copytree(project, folder, ignore=shutil.ignore_patterns("__pycache__", ".git"))
    return folder


def alone(command: str, folder: Path, python: Path) -> Spent:
    """Run the command in a shell as `--verify` does, without recording."""
    path = os.pathsep.join([str(python.absolute().parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "JAX_PLATFORMS": "cpu"}
    return run(["sh", "-c", command], cwd=folder, env=environment)


def run(command: list[str], **options: object) -> Spent:
    """Run a command that must succeed."""
    started, used = time.monotonic(), _processor_seconds()
    done = subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    spent = Spent(time.monotonic() - started, _processor_seconds() - used)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return spent


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
