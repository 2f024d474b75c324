"""Command line of the benchmark, see the package."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..speed.processes import BenchmarkError, Command, spend
from . import __doc__ as what_it_is
from .generators import GENERATORS, Generator

# Seconds: a run that takes longer is the last, and one that takes less says nothing on growth.
_LONG, _SHORT = 2.0, 0.1


@dataclass(frozen=True)
class Growth:
    """How the time of a run grows.

    Attributes:
        name: the generator.
        sizes: the sizes of the inputs.
        seconds: CPU seconds of each, less those of an empty run.
        exponent: None if no run took long enough to tell.
    """

    name: str
    sizes: list[int]
    seconds: list[float]
    exponent: float | None


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth",
        description=what_it_is,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="generators with these words")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    options = parser.parse_args()
    chosen = [
        name
        for name in GENERATORS
        if not options.only or any(words in name for words in options.only)
    ]
    empty = statistics.median(
        _seconds(Generator(lambda n: {"m.py": "import jax\n"}), 1) for _ in range(3)
    )
    with ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(lambda name: _growth(name, GENERATORS[name], empty), chosen))
    print(f"An empty run takes {empty:.2f} s.\n")
    print("| input | largest n | its seconds | exponent |\n|---|--:|--:|--:|")
    for growth in found:
        exponent = "-" if growth.exponent is None else f"{growth.exponent:.2f}"
        print(f"| {growth.name} | {growth.sizes[-1]:,} | {growth.seconds[-1]:.2f} | {exponent} |")


def _growth(name: str, generator: Generator, empty: float) -> Growth:
    """Double the size until a run takes long."""
    sizes, seconds = [], []
    size = min(generator.first, generator.most)
    while True:
        sizes.append(size)
        seconds.append(max(_seconds(generator, size) - empty, 0.0))
        if seconds[-1] > _LONG or size >= generator.most:
            break
        size = min(2 * size, generator.most)
    points = [
        (math.log(n), math.log(t)) for n, t in zip(sizes, seconds, strict=True) if t > _SHORT
    ][-4:]
    exponent = None
    if len(points) > 1:
        exponent = statistics.linear_regression(*zip(*points, strict=True)).slope
    print(f"{name}: {exponent}", sizes[-1], f"{seconds[-1]:.2f} s", file=sys.stderr, flush=True)
    return Growth(name, sizes, seconds, exponent)


def _seconds(generator: Generator, size: int) -> float:
    """Return the CPU seconds of a run over a new folder with an input.

    Raises:
        BenchmarkError: the run fails.
    """
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "pyproject.toml").write_text("[project]\nname = 'growth'\n")
        for name, text in generator.files(size).items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        command = (sys.executable, "-m", "remat_migrate", *generator.arguments)
        try:
            return spend(Command("remat-migrate", command, folder)).cpu
        except BenchmarkError as error:
            raise BenchmarkError(f"size {size}: {error}") from error
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
