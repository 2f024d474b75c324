"""Try a slice of the programs in one process, some of them also on the command line."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .arbitrary import arbitrary, pieces
from .batch import check_batch
from .campaign import PROGRAMS, Failure, PythonCounts, try_checkpoints, try_python
from .drawing import Draw
from .execution import Workers
from .subject import Subject, Wrong
from .trial import Counts

# Programs per task, and how many of them form the folder for the command line.
SLICE = 500
BATCH = 60
# Texts of Hypothesmith per slice: each takes about a tenth of a second to generate.
PIECES = 24


@dataclass
class Slice:
    """The results for some programs."""

    failures: list[str] = field(default_factory=list)
    python: PythonCounts = field(default_factory=PythonCounts)
    programs: Counts = field(default_factory=Counts)
    batches: int = 0
    seconds: float = 0.0


def run_slice(
    source: str,
    seed: int,
    numbers: Sequence[int],
    attempts: int,
    needless: bool,
    cache: Path | None,
) -> Slice:
    """Try the programs with these numbers."""
    warnings.simplefilter("ignore")
    done = Slice()
    began = time.process_time()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "project").mkdir()
        subject = Subject(folder / "project")
        failures: list[Failure] = []
        if source == "python":
            texts = pieces(seed + numbers[0] // SLICE, PIECES)
            failures += try_python(seed, numbers, subject, texts, done.python, attempts)
            files = {f"m{n}.py": arbitrary(Draw(f"{seed}/{n}"), texts) for n in numbers[:BATCH]}
        else:
            with Workers(cache) as workers:
                failures += try_checkpoints(
                    seed,
                    numbers,
                    subject,
                    workers,
                    done.programs,
                    source,
                    attempts,
                    needless=needless,
                )
            files = {
                f"p{n}/{name}": text.encode()
                for n in numbers[:BATCH]
                for name, text in PROGRAMS[source](Draw(f"{seed}/{n}")).items()
            }
        try:
            if len(numbers) > 1 and (numbers[0] == 0 or source != "trainers"):
                check_batch(files, folder)
                done.batches += 1
        except Wrong as error:
            done.failures.append(f"{source} programs {numbers[0]} to {numbers[-1]}: {error}")
    done.failures += map(str, failures)
    done.seconds = time.process_time() - began
    return done


def slices(examples: int, only: int | None, jobs: int) -> list[Sequence[int]]:
    if only is not None:
        return [[only]]
    size = min(SLICE, -(-examples // jobs))
    return [range(n, min(n + size, examples)) for n in range(0, examples, size)]
