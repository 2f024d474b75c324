"""Measure the cost of `measure`: time relative to a bare trace, memory, and how both grow.

    python benchmarks/measure_cost.py [--blocks 6 12 24 48] [--checkpoints 1 4] [--rounds 3]

The program is a decoder with blocks of width 4096 in a Python loop (48 blocks have 9.7 billion
parameters in bfloat16; a batch is 8 by 2048), with a checkpoint around each block, or with four
checkpoints in each. It is traced on shapes. Needs jax.

Each row runs in its own process, and shows CPU time and resident memory:

- bare: `jax.make_jaxpr(jax.value_and_grad(loss))` of the program without its checkpoints,
- as is: the same with checkpoints; JAX traces the same checkpointed function only once,
- analysis: `sites.measure`, which traces the program as it is, without each of its checkpoints,
  without all of them, and its forward pass; with the ratio to both,
- memory: peak resident memory after the analysis, and the part of it that is due to the analysis.
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
    """Measure, and print a line for each number of checkpoints and blocks."""
    parser = argparse.ArgumentParser(description="Measure the cost of measuring.")
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
        print(f"checkpoints in each block: {checkpoints}")
        rows = []
        for blocks in given.blocks:
            rows.append(in_process(blocks, checkpoints, given.rounds))
            print("  " + line(rows[-1]), flush=True)
        for before, after in itertools.pairwise(rows):
            print("  " + growth(before, after))


def in_process(blocks: int, checkpoints: int, rounds: int) -> dict[str, Any]:
    """Measure a row in a new process."""
    command = [sys.executable, __file__, "--row", f"--rounds={rounds}"]
    command += [f"--blocks={blocks}", f"--checkpoints={checkpoints}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def row(blocks: int, checkpoints: int, rounds: int) -> dict[str, Any]:
    """Return the median seconds and bytes of the rounds."""
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
    # Excludes what JAX imports and prepares at its first trace.
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
        raise SystemExit(f"the checkpoints are not those of the model: {judged}")
    return {
        "blocks": blocks,
        "parameters": deep.parameters(blocks),
        **{name: statistics.median(times) for name, times in found.items()},
        "imported": imported,
        "memory": memory,
    }


def seconds(run: Callable[[Any], Any], variant: Any) -> float:
    """Return the CPU seconds of a call."""
    started = time.process_time()
    run(variant)
    return time.process_time() - started


def resident() -> int:
    """Return the peak of resident bytes so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux reports kilobytes.
    return most if sys.platform == "darwin" else most * 1024


def line(row: dict[str, Any]) -> str:
    """Format a row."""
    return (
        f"{row['blocks']:3} blocks, {row['parameters'] / 1e9:.2f} B parameters:"
        f" bare {row['bare']:.2f} s, as is {row['as_is']:.2f} s, analysis {row['analysis']:.2f} s:"
        f" {row['analysis'] / row['bare']:.1f} and {row['analysis'] / row['as_is']:.1f} times;"
        f" memory {row['memory'] / 1e6:.0f} MB, {(row['memory'] - row['imported']) / 1e6:.0f} MB"
        " after imports"
    )


def growth(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Format the growth per block between two rows."""
    blocks = after["blocks"] - before["blocks"]
    return (
        f"from {before['blocks']} to {after['blocks']}:"
        f" {(after['analysis'] - before['analysis']) / blocks * 1e3:.0f} ms and"
        f" {(after['memory'] - before['memory']) / blocks / 1e6:.1f} MB for each block"
    )


if __name__ == "__main__":
    main()
