"""Measure small programs before and after fixes of misplaced checkpoints.

    python benchmarks/placement_fixes.py [NAME ...] [--values FOLDER]

The programs are in `fixtures/placement/before`, and the fixed programs in `after`. Peak memory and
operations are those of the traced gradient computation; temporary memory is that of the program
compiled for this machine. Values and gradients are computed, too. Needs jax, and the libraries that
the programs use.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from interception import ROOT, intercept_checkpoints

PROGRAMS = ROOT / "fixtures" / "placement"
SIDES = ("before", "after")


def main() -> None:
    """Print the figures of each requested program as JSON."""
    parser = argparse.ArgumentParser(description="Measure fixes of misplaced checkpoints.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--values", type=Path, help="write values and gradients to .npz files")
    given = parser.parse_args()
    intercept_checkpoints()
    names = given.names or sorted(path.stem for path in (PROGRAMS / "before").glob("*.py"))
    rows = {}
    for name in names:
        if missing := missing_library(name):
            print(f"{name:16}skipped: {missing} is not installed", file=sys.stderr)
            continue
        rows[name] = {side: measured(name, side, given.values) for side in SIDES}
    import jax

    print(json.dumps({"jax": jax.__version__, "rows": rows}))


def missing_library(name: str) -> str:
    """Return the library that a program needs but that is not installed, if any."""
    wanted = {"equinox": "equinox", "flax": "flax", "haiku": "haiku"}.get(name.partition("_")[0])
    return wanted if wanted and importlib.util.find_spec(wanted) is None else ""


def measured(name: str, side: str, values: Path | None) -> dict[str, int]:
    """Return the peak, the temporary bytes, and the operations of one program."""
    from remat_migrate.measure.worker import sites
    from remat_migrate.measure.worker.entry import NONE, Differentiation, Entry
    from remat_migrate.measure.worker.instruments.compiled import compiled
    from remat_migrate.measure.worker.interception import plan

    program = load(name, side)
    arguments = program.arguments()
    # Programs that take gradients themselves define `taken = "none"`.
    how = Differentiation(by=NONE) if getattr(program, "taken", "") == "none" else Differentiation()
    loss = program.loss
    if name.startswith("equinox"):
        loss, arguments = of_arrays(loss, arguments)
    if values is not None:
        write_values(values / f"{name}.{side}.npz", loss, arguments, how.by == NONE)
    entry = Entry(loss, arguments, {}, how)
    cost = sites.trace(entry, {})
    with plan({}):
        temporary = compiled(entry).temporary
    return {"peak": cost.peak_bytes, "flops": cost.flops, "temporary": temporary}


def load(name: str, side: str) -> Any:
    """Import a program."""
    path = PROGRAMS / side / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{side}_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def of_arrays(loss: Any, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return a function of an Equinox model as a function of the arrays of the model."""
    import equinox as eqx

    arrays, rest = eqx.partition(arguments[0], eqx.is_array)
    return lambda arrays, *others: loss(eqx.combine(arrays, rest), *others), (
        arrays,
        *arguments[1:],
    )


def write_values(path: Path, loss: Any, arguments: tuple[Any, ...], own: bool) -> None:
    """Write the value and the gradient of a program as numbered arrays."""
    import jax
    import numpy as np

    function = loss if own else jax.value_and_grad(loss)
    leaves, tree = jax.tree_util.tree_flatten(function(*arguments))
    arrays = {f"{index}": np.asarray(leaf) for index, leaf in enumerate(leaves)}
    np.savez(path, tree=np.array(str(tree)), **arrays)


if __name__ == "__main__":
    main()
