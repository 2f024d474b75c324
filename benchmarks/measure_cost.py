"""What measuring costs: time over that of the bare trace, memory, and how both grow.

    python benchmarks/measure_cost.py [--blocks 6 12 24 48] [--checkpoints 1 4] [--rounds 3]

The program is a decoder of so many blocks of width 4096 (48 of them have 9.7 billion parameters, in
bfloat16; a batch is 8 by 2048), in a Python loop, with a checkpoint around each block, or with four
checkpoints in each at four lines. Nothing of it is there but shapes. Needs jax in the interpreter
that runs this.

Each row is a process of its own, which takes processor time and resident memory:

- bare: `jax.make_jaxpr(jax.value_and_grad(loss))` of the program without its checkpoints,
- as is: the same with them; JAX traces a checkpointed function that it is given again only once,
- analysis: `sites.measure`, which traces the program once as it is, once without each of its
  checkpoints, once without all, and once forward; its ratio to both,
- memory: the most that is resident when the analysis has ended, and how much of that came after
  all was imported.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Measure, and print a line for each number of checkpoints and of blocks."""
    parser = argparse.ArgumentParser(description="What measuring costs.")
    parser.add_argument("--blocks", type=int, nargs="+", default=[6, 12, 24, 48])
    parser.add_argument("--checkpoints", type=int, nargs="+", choices=(1, 4), default=[1, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--row", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row:
        found = row(given.blocks[0], given.checkpoints[0], given.rounds)
        print(json.dumps(found))
        return
    for checkpoints in given.checkpoints:
        print(f"{checkpoints} in each block")
        rows = []
        for blocks in given.blocks:
            rows.append(in_process(blocks, checkpoints, given.rounds))
            print("  " + line(rows[-1]), flush=True)
        for before, after in itertools.pairwise(rows):
            print("  " + growth(before, after))


def in_process(blocks: int, checkpoints: int, rounds: int) -> dict[str, Any]:
    """A row, measured where nothing has been traced before."""
    command = [sys.executable, __file__, "--row", f"--rounds={rounds}"]
    command += [f"--blocks={blocks}", f"--checkpoints={checkpoints}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def row(blocks: int, checkpoints: int, rounds: int) -> dict[str, Any]:
    """Seconds and bytes, each the median of the rounds."""
    sys.path.insert(0, str(ROOT))
    from remat_migrate.measure.worker import interception

    interception.install()
    import jax
    from models import deep

    from remat_migrate.measure.worker.entry import Differentiation, Entry
    from remat_migrate.measure.worker.sites import measure

    def trace(variant: Any) -> None:
        jax.clear_caches()
        jax.make_jaxpr(jax.value_and_grad(variant.loss))(*variant.args)

    def analyse(variant: Any) -> Any:
        return measure(Entry(variant.loss, variant.args, {}, Differentiation()))

    imported = resident()
    # What JAX imports and prepares at its first trace is no part of any.
    for variant in (deep.variant(1, 0), deep.variant(1, checkpoints)):
        trace(variant)
        analyse(variant)
    bare, given = deep.variant(blocks, 0), deep.variant(blocks, checkpoints)
    found: dict[str, list[float]] = {"bare": [], "as_is": [], "analysis": []}
    for _ in range(rounds):
        found["bare"].append(seconds(trace, bare))
        found["as_is"].append(seconds(trace, given))
        found["analysis"].append(seconds(analyse, given))
    memory = resident()
    judged = analyse(given).measurements
    if len(judged) != checkpoints or any(site.applications != blocks for site in judged):
        raise SystemExit(f"not the checkpoints that were placed: {judged}")
    return {
        "blocks": blocks,
        "parameters": deep.parameters(blocks),
        **{name: statistics.median(times) for name, times in found.items()},
        "imported": imported,
        "memory": memory,
    }


def seconds(run: Callable[[Any], Any], variant: Any) -> float:
    """Processor time."""
    started = time.process_time()
    run(variant)
    return time.process_time() - started


def resident() -> int:
    """The most bytes that have been resident so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux gives kilobytes.
    return most if sys.platform == "darwin" else most * 1024


def line(row: dict[str, Any]) -> str:
    """One number of blocks."""
    return (
        f"{row['blocks']:3} blocks, {row['parameters'] / 1e9:.2f} B parameters:"
        f" bare {row['bare']:.2f} s, as is {row['as_is']:.2f} s, analysis {row['analysis']:.2f} s:"
        f" {row['analysis'] / row['bare']:.1f} and {row['analysis'] / row['as_is']:.1f} times;"
        f" memory {row['memory'] / 1e6:.0f} MB, {(row['memory'] - row['imported']) / 1e6:.0f} MB"
        " beyond importing"
    )


def growth(before: dict[str, Any], after: dict[str, Any]) -> str:
    """What a further block adds."""
    blocks = after["blocks"] - before["blocks"]
    return (
        f"from {before['blocks']} to {after['blocks']}:"
        f" {(after['analysis'] - before['analysis']) / blocks * 1e3:.0f} ms and"
        f" {(after['memory'] - before['memory']) / blocks / 1e6:.1f} MB for each block"
    )


if __name__ == "__main__":
    main()
