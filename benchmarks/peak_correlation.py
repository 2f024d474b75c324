"""Whether the predicted peak ranks placements of checkpoints as the compiled program does.

    python benchmarks/peak_correlation.py [KIND ...] [--variants] [--json FILE]

    python benchmarks/peak_correlation.py perceptron recurrent --variants

Kinds: perceptron, transformer (its blocks in a Python loop), scanned (as a scan), pyramid (of
convolutions), recurrent (a scan over time), mixer (Flax). Each is a model of its own with some
thirty placements of checkpoints, see `benchmarks/models`; all is traced and compiled on shapes,
nothing executed. Needs jax and flax in the interpreter that runs this, and ten minutes for all.

Printed for each kind and for all together: Spearman's rank correlation with the temporary memory
that XLA gives the compiled program, and the median distance from it, of

- the peak that `measure` shows, which counts the gradients that the program gives,
- the same without them: XLA does not count what a program gives as temporary,
- the bytes of the residuals, for comparison.

All together the sizes of the models count as well, so the mean of the correlations within the kinds
stands beside: it asks only which placement of the same model needs less.

What the prediction ranks wrong: a policy on the whole loss of a perceptron or transformer, where
nothing makes XLA compute again before the backward pass begins, so that it does so late and needs
less; a checkpoint around a whole scan, of which XLA keeps results twice; and placements that differ
by a few percent. Chains of elementwise operations, which XLA fuses, make the prediction too high
for all placements of a model alike: by two fifths for the perceptron, by a quarter for the mixer.

Left out, and shown apart: `prevent_cse=False` outside a loop, where the compiler merges the second
computation with the first, and the checkpoint is gone. A trace cannot show that.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
KINDS = {
    "perceptron": ("perceptron", "variants"),
    "transformer": ("transformer", "unrolled"),
    "scanned": ("transformer", "scanned"),
    "pyramid": ("pyramid", "variants"),
    "recurrent": ("recurrent", "variants"),
    "mixer": ("mixer", "variants"),
}
FIGURES = ("peak", "temporary", "residuals")


class Row(NamedTuple):
    """A variant, in bytes.

    Attributes:
        kind: of which model.
        name: its checkpoints.
        compiled: temporary memory of the compiled program.
        peak: predicted, with what the program gives.
        temporary: predicted, without that.
        residuals: what the forward pass keeps.
        left_out: why it does not count, or nothing.
    """

    kind: str
    name: str
    compiled: int
    peak: int
    temporary: int
    residuals: int
    left_out: str


def main() -> None:
    """Measure, and print a line for each kind."""
    parser = argparse.ArgumentParser(description="Whether the predicted peak ranks placements.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--variants", action="store_true", help="a line for each of them as well")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    given = parser.parse_args()
    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"no kind {', '.join(sorted(unknown))}: there are {', '.join(KINDS)}")
    started = time.monotonic()
    kinds = given.kinds or list(KINDS)
    measure = instruments()
    rows: list[Row] = []
    print(f"{'':12} {'':>8}  " + "  ".join(f"{name:>16}" for name in FIGURES))
    print(f"{'kind':12} {'variants':>8}  " + "  ".join(f"{'rank   distance':>16}" for _ in FIGURES))
    for kind in kinds:
        found = measured(kind, measure, given.variants)
        rows += found
        print(summary(kind, [row for row in found if not row.left_out]), flush=True)
    counted = [row for row in rows if not row.left_out]
    print(summary("all", counted))
    within = {figure: within_kinds(counted, figure) for figure in FIGURES}
    print(
        f"{'mean within':12} {'':8}  " + "  ".join(f"{within[name]:8.3f}{'':8}" for name in FIGURES)
    )
    show_left_out(rows)
    if given.json:
        given.json.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n")
    print(f"{time.monotonic() - started:.0f} s")


def instruments() -> Callable[[Any], tuple[int, ...]]:
    """What takes the figures of a variant: compiled, peak, temporary, residuals."""
    import jax

    sys.path.insert(0, str(ROOT))
    from remat_migrate.measure.worker.entry import Differentiation, Entry
    from remat_migrate.measure.worker.instruments import compiled, liveness, residuals

    compiled.choose_scheduler(jax.__version__)

    def measure(variant: Any) -> tuple[int, ...]:
        entry = Entry(variant.loss, variant.args, {}, Differentiation())
        jaxpr = entry.gradient_jaxpr()
        program = compiled.compile_program(entry.differentiated, *entry.shapes)
        found = (liveness.peak(jaxpr), liveness.temporary(jaxpr), residuals.kept_bytes(entry))
        jax.clear_caches()
        return program.temporary_bytes, *found

    return measure


def measured(kind: str, measure: Callable[[Any], tuple[int, ...]], shown: bool) -> list[Row]:
    """All variants of a kind."""
    module, make = KINDS[kind]
    variants = getattr(importlib.import_module(f"models.{module}"), make)()
    rows = []
    for name, variant in variants.items():
        rows.append(Row(kind, name, *measure(variant), variant.left_out))  # type: ignore[call-arg]
        if shown:
            print(line(rows[-1]), flush=True)
    return rows


def summary(title: str, rows: Sequence[Row]) -> str:
    """Correlation and distance of each figure."""
    compiled = [row.compiled for row in rows]
    cells = []
    for name in FIGURES:
        figures = [getattr(row, name) for row in rows]
        distance = statistics.median(
            abs(figure / real - 1) for figure, real in zip(figures, compiled, strict=True)
        )
        cells.append(f"{rank_correlation(figures, compiled):8.3f}{distance:7.1%} ")
    return f"{title:12} {len(rows):8}  " + "  ".join(cells)


def within_kinds(rows: Sequence[Row], figure: str) -> float:
    """The mean of the correlations of the kinds."""
    found = []
    for kind in dict.fromkeys(row.kind for row in rows):
        own = [row for row in rows if row.kind == kind]
        figures = [getattr(row, figure) for row in own]
        found.append(rank_correlation(figures, [row.compiled for row in own]))
    return statistics.mean(found)


def show_left_out(rows: Sequence[Row]) -> None:
    """What does not count and why, and the correlation if it did."""
    left_out = [row for row in rows if row.left_out]
    for row in left_out:
        print(f"left out: {line(row)}: {row.left_out}")
    if left_out:
        print(summary("with these", rows))


def line(row: Row) -> str:
    """A variant in megabytes."""
    return f"{row.kind} {row.name}: compiled {row.compiled / 1e6:.1f}, " + ", ".join(
        f"{name} {getattr(row, name) / 1e6:.1f}" for name in FIGURES
    )


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's: Pearson's correlation of the ranks, equal values with their mean rank.

    Raises:
        statistics.StatisticsError: fewer than two values, or all of one side are equal.
    """
    return statistics.correlation(ranks(first), ranks(second))


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value from 1 for the least; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        stop = start
        while stop < len(order) and values[order[stop]] == values[order[start]]:
            stop += 1
        for place in order[start:stop]:
            found[place] = (start + 1 + stop) / 2
        start = stop
    return found


if __name__ == "__main__":
    main()
