"""Compare the predicted peak of many placements of checkpoints with the compiled program.

    python benchmarks/peak_correlation.py [KIND ...] [--variants] [--json FILE]

    python benchmarks/peak_correlation.py perceptron recurrent --variants

Kinds: perceptron, transformer (blocks in a Python loop), scanned (blocks in a scan), pyramid
(convolutions), recurrent (a scan over time), mixer (Flax). Each is a model with about thirty
placements of checkpoints, see `benchmarks/models`. They are traced and compiled on shapes, and
never executed. Needs jax and flax, and ten minutes for all kinds.

For each kind and for all of them together, prints Spearman's rank correlation with the temporary
memory of the compiled program, and the median relative error, of

- the peak that `measure` shows, which includes the gradients that the program returns,
- the bytes of the residuals, for comparison.

Across kinds, the correlation also reflects the sizes of the models. The mean of the correlations
within the kinds does not: it only compares placements in the same model.

The prediction ranks these placements wrong: a policy on the whole loss of a perceptron or
transformer, where XLA schedules the recomputation late and needs less memory; a checkpoint around a
whole scan, whose results XLA keeps twice; and placements that differ by a few percent. XLA fuses
chains of elementwise operations, which makes the prediction too high for all placements of a model:
by two fifths for the perceptron, and by a quarter for the mixer.

Excluded, and listed separately: `prevent_cse=False` outside a loop, where XLA merges the
recomputation with the forward pass. A trace cannot show that.
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
FIGURES = ("peak", "residuals")


class Row(NamedTuple):
    """The figures of a variant in bytes.

    Attributes:
        kind: kind of model.
        name: placement of its checkpoints.
        excluded: why the variant does not count, or the empty string.
        compiled: temporary memory of the compiled program.
        peak: predicted peak.
        residuals: residuals of the forward pass.
    """

    kind: str
    name: str
    excluded: str
    compiled: int
    peak: int
    residuals: int


def main() -> None:
    """Measure all variants, and print a line for each kind."""
    parser = argparse.ArgumentParser(description="Compare predicted peaks with compiled programs.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--variants", action="store_true", help="also print each variant")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"unknown kind {', '.join(sorted(unknown))}: choose from {', '.join(KINDS)}")
    started = time.monotonic()
    measure = instruments()
    rows: list[Row] = []
    print(f"{'':12} {'':>8}  " + "  ".join(f"{name:>16}" for name in FIGURES))
    print(f"{'kind':12} {'variants':>8}  " + "  ".join(f"{'rank      error':>16}" for _ in FIGURES))
    for kind in options.kinds or KINDS:
        found = measured(kind, measure, options.variants)
        rows += found
        print(summary(kind, [row for row in found if not row.excluded]), flush=True)
    counted = [row for row in rows if not row.excluded]
    print(summary("all", counted))
    within = [correlation_within_kinds(counted, figure) for figure in FIGURES]
    print(f"{'mean within':12} {'':8}  " + "  ".join(f"{mean:8.3f}{'':8}" for mean in within))
    for row in rows:
        if row.excluded:
            print(f"excluded: {line(row)}: {row.excluded}")
    if len(counted) < len(rows):
        print(summary("with these", rows))
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n")
    print(f"{time.monotonic() - started:.0f} s")


def instruments() -> Callable[[Any], tuple[int, ...]]:
    """Return a function that takes the figures of a variant: compiled, peak, residuals."""
    import jax

    sys.path.insert(0, str(ROOT))
    from remat_migrate.measure.worker.entry import Differentiation, Entry
    from remat_migrate.measure.worker.instruments import compiled, liveness, residuals

    compiled.choose_scheduler(jax.__version__)

    def measure(variant: Any) -> tuple[int, ...]:
        entry = Entry(variant.loss, variant.args, {}, Differentiation())
        figures = (
            compiled.temporary_bytes(entry, entry.differentiated),
            liveness.peak(entry.gradient_jaxpr()),
            sum(residuals.residual_sizes(entry)),
        )
        jax.clear_caches()
        return figures

    return measure


def measured(kind: str, measure: Callable[[Any], tuple[int, ...]], shown: bool) -> list[Row]:
    """Return the figures of all variants of a kind."""
    module, make = KINDS[kind]
    variants = getattr(importlib.import_module(f"models.{module}"), make)()
    rows = []
    for name, variant in variants.items():
        rows.append(Row(kind, name, variant.excluded, *measure(variant)))  # type: ignore[call-arg]
        if shown:
            print(line(rows[-1]), flush=True)
    return rows


def summary(title: str, rows: Sequence[Row]) -> str:
    """Return the correlation and the median error of each figure."""
    cells = []
    for figure in FIGURES:
        error = statistics.median(abs(getattr(row, figure) / row.compiled - 1) for row in rows)
        cells.append(f"{correlation(rows, figure):8.3f}{error:7.1%} ")
    return f"{title:12} {len(rows):8}  " + "  ".join(cells)


def correlation(rows: Sequence[Row], figure: str) -> float:
    """Return Spearman's rank correlation of a figure with the compiled program."""
    from scipy.stats import spearmanr

    figures = [getattr(row, figure) for row in rows]
    return float(spearmanr(figures, [row.compiled for row in rows]).statistic)


def correlation_within_kinds(rows: Sequence[Row], figure: str) -> float:
    """Return the mean of the correlations within each kind."""
    kinds = dict.fromkeys(row.kind for row in rows)
    return statistics.mean(
        correlation([row for row in rows if row.kind == kind], figure) for kind in kinds
    )


def line(row: Row) -> str:
    """Return the figures of a variant in megabytes."""
    return f"{row.kind} {row.name}: compiled {row.compiled / 1e6:.1f}, " + ", ".join(
        f"{name} {getattr(row, name) / 1e6:.1f}" for name in FIGURES
    )


if __name__ == "__main__":
    main()
