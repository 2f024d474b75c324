"""Fuzz the tool: `python -m tests.fuzz --examples 10000` in a checkout.

There are three sources of programs, with `--examples` programs each: arbitrary Python with
checkpoints in it, functions with a checkpoint around them, and training code in several files.
Programs of the last two are run under JAX before and after. The exit status is 1 if anything
failed; each failure is shown as a minimised program, with the command that reproduces it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import fields
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from .campaign import ATTEMPTS, PROGRAMS, PythonCounts
from .slices import Slice, run_slice, slices
from .trial import Counts

_SPAWN = get_context("spawn")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000, help="programs of each source")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("python", *PROGRAMS))
    parser.add_argument("--program", type=int, help="this one alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--attempts", type=int, default=ATTEMPTS, help="how often a failure is tried smaller"
    )
    parser.add_argument(
        "--needless",
        action="store_true",
        help="show what is refused or made static though it runs when `concrete=` is dropped",
    )
    given = parser.parse_args(arguments)
    sources = [given.only] if given.only else ["python", *PROGRAMS]
    tasks = [(s, n) for s in sources for n in slices(given.examples, given.program, given.jobs)]
    total = Slice()
    programs = {source: Counts() for source in sources if source in PROGRAMS}
    began = time.monotonic()
    with TemporaryDirectory() as cache, ProcessPoolExecutor(given.jobs, _SPAWN) as pool:
        settled = given.attempts, given.needless, Path(cache)
        running = {pool.submit(run_slice, s, given.seed, n, *settled): s for s, n in tasks}
        for number, task in enumerate(as_completed(running), 1):
            source = running[task]
            done = task.result()
            for failure in done.failures:
                print(f"\n{failure}", flush=True)
                again = f"python -m tests.fuzz --seed {given.seed} --only {source}"
                print(f"reproduce with: {again} --program N", flush=True)
            total.failures += done.failures
            if source in programs:
                programs[source] += done.programs
            for one in fields(PythonCounts):
                sum_ = getattr(total.python, one.name) + getattr(done.python, one.name)
                setattr(total.python, one.name, sum_)
            total.batches += done.batches
            passed = time.monotonic() - began
            print(f"{number} of {len(tasks)} slices, {passed:.0f} s", file=sys.stderr)
            print(f"  {programs.get(source, total.python)}", file=sys.stderr, flush=True)
    if "python" in sources:
        print(f"python: {total.python}")
    for source, counts in programs.items():
        print(f"{source}: {counts}")
    print(f"{total.batches} batches on the command line, {len(total.failures)} failures")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
