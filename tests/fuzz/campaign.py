"""A part of a run of `python -m tests.fuzz`, which a process of its own executes."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from .checkpoint_programs import program
from .drawing import Draw
from .execution import Workers
from .trial import Trial, Wrong


def failures(trial: Trial, seed: int, numbers: Sequence[int]) -> list[str]:
    """Try the programs with these numbers and describe those that fail."""
    found = []
    for number in numbers:
        try:
            trial(program(Draw(f"{seed}/{number}")), unsafe=number % 2 == 1)
        except Wrong as error:
            problem = str(error)
        except Exception:  # any other error is a crash of the tool: that is looked for
            problem = traceback.format_exc()
        else:
            continue
        command = f"python -m tests.fuzz --seed {seed} --program {number}"
        found.append(f"{problem}\nreproduce with: {command}\n")
    return found


def run(task: tuple[int, Sequence[int]]) -> tuple[Counter[str], list[str]]:
    """Try a part of the programs in this process."""
    with TemporaryDirectory() as folder, Workers() as workers:
        trial = Trial(Path(folder), workers)
        found = failures(trial, *task)
        return trial.counts, found
