"""Fuzz the tool: `python -m tests.fuzz --examples 10000` in a checkout.

Generates `--examples` programs: functions with a checkpoint around them, in one or two files. Each
is fixed, alternately with the unsafe fixes, and run under JAX before and after. The exit status is
1 if anything failed; each failure is shown with the command that reproduces it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from .campaign import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000, help="programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--program", type=int, help="this one alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    numbers = range(given.examples) if given.program is None else [given.program]
    tasks = [(given.seed, numbers[job :: given.jobs]) for job in range(given.jobs)]
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        for more, found in pool.map(run, tasks):
            counts += more
            counts["failed"] += len(found)
            print("\n".join(found), end="", flush=True)
    print(", ".join(f"{number} {what}" for what, number in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
