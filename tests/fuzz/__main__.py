"""Fuzz the tool: `python -m tests.fuzz --examples 10000` in a checkout.

Two sources of programs, `--examples` of each: arbitrary Python with checkpoints in it, and programs
around checkpoints that are run under JAX before and after. Exit status 1 if anything failed; each
failure is shown as a small program, with the command that makes it again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import fields
from multiprocessing import get_context

from .campaign import PythonCounts
from .slices import Slice, run_slice, slices


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000, help="programs of each source")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("python", "checkpoints"))
    parser.add_argument("--program", type=int, help="this one alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args(arguments)
    sources = [given.only] if given.only else ["python", "checkpoints"]
    tasks = [(s, n) for s in sources for n in slices(s, given.examples, given.program)]
    total = Slice()
    began = time.monotonic()
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        running = {pool.submit(run_slice, s, given.seed, n): s for s, n in tasks}
        for number, task in enumerate(as_completed(running), 1):
            source = running[task]
            done = task.result()
            for failure in done.failures:
                print(f"\n{failure}", flush=True)
                again = f"python -m tests.fuzz --seed {given.seed} --only {source}"
                print(f"again: {again} --program N", flush=True)
            total.failures += done.failures
            total.checkpoints += done.checkpoints
            for one in fields(PythonCounts):
                sum_ = getattr(total.python, one.name) + getattr(done.python, one.name)
                setattr(total.python, one.name, sum_)
            total.batches += done.batches
            passed = time.monotonic() - began
            print(f"{number} of {len(tasks)} slices, {passed:.0f} s", file=sys.stderr)
            print(f"  {total.python}; {total.checkpoints}", file=sys.stderr, flush=True)
    if "python" in sources:
        print(f"python: {total.python}")
    if "checkpoints" in sources:
        print(f"checkpoints: {total.checkpoints}")
    print(f"{total.batches} batches by the command line, {len(total.failures)} failures")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
