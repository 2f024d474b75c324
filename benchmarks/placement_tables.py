"""Measure many placements of checkpoints: the tables behind the verdicts of `measure`.

    python benchmarks/placement_tables.py [TABLE[:ROW] ...] [--compile] [--verdicts] [--json]

    python benchmarks/placement_tables.py loop "scan:body" --compile

Tables: loop, scan, head (a transformer), chain (tanh layers), flax, situations. The programs are
in `fixtures/measured/placements`. They are traced on shapes, and never executed. Uses the measuring
worker in its own process, so it needs jax, and flax for that table.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from interception import intercept_checkpoints

TABLES = ("loop", "scan", "head", "chain", "flax", "situations")
Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def main() -> None:
    """Print the requested rows, or all."""
    parser = argparse.ArgumentParser(description="Measure many placements of checkpoints.")
    parser.add_argument("rows", nargs="*", metavar="TABLE[:ROW]")
    parser.add_argument("--compile", action="store_true", help="also show temporary memory")
    parser.add_argument("--verdicts", action="store_true", help="also show verdicts")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    intercept_checkpoints()
    rows = []
    for table, row, case in chosen(given.rows):
        found = {"table": table, "row": row, **measured(case, given)}
        rows.append(found)
        if not given.json:
            print(shown(found), flush=True)
    if given.json:
        import jax

        print(json.dumps({"jax": jax.__version__, "rows": rows}))


def chosen(asked: list[str]) -> Iterator[tuple[str, str, Case]]:
    """Yield the requested rows in order: table, row and program."""
    wanted = [text.partition(":") for text in asked or TABLES]
    for table in dict.fromkeys(table for table, _, _ in wanted):
        if table not in TABLES:
            sys.exit(f"unknown table {table}: choose from {', '.join(TABLES)}")
        own = {row for name, _, row in wanted if name == table}
        cases = cases_of(table)
        if unknown := own - {""} - cases.keys():
            sys.exit(f"{table}: unknown row {', '.join(unknown)}: choose from {', '.join(cases)}")
        for row, case in cases.items():
            if "" in own or row in own:
                yield table, row, case


def cases_of(table: str) -> dict[str, Case]:
    """Return the rows of a table: function, arguments, and how it is differentiated."""
    if table == "chain":
        chain = importlib.import_module("placements.chain")
        return {name: (f, chain.arguments(), {}) for name, f in chain.placements().items()}
    if table == "flax":
        flax = importlib.import_module("placements.flax_transformer")
        return {name: (*flax.program(module), {}) for name, module in flax.placements().items()}
    transformer = importlib.import_module("placements.transformer")
    if table == "situations":
        return _situations(transformer)
    programs, arguments = {
        "loop": (transformer.loops, transformer.loop_arguments),
        "scan": (transformer.scans, transformer.scan_arguments),
        "head": (transformer.heads, lambda: transformer.head_arguments(4)),
    }[table]
    by = {"argnums": (0, 1)} if table == "head" else {}
    return {name: (f, arguments(), by) for name, f in programs().items()}


def _situations(transformer: Any) -> dict[str, Case]:
    import jax

    situations = importlib.import_module("placements.situations").SITUATIONS
    losses = {"none": transformer.looped, "whole": jax.checkpoint(transformer.looped)}
    return {
        f"{name}, {kind}": (*made(loss), {"by": "none"})
        for name, made in situations.items()
        for kind, loss in losses.items()
    }


def measured(case: Case, asked: argparse.Namespace) -> dict[str, Any]:
    """Return a row: bytes, operations, those of a forward pass, and other requested figures."""
    from remat_migrate.measure.worker import sites
    from remat_migrate.measure.worker.entry import NONE, Differentiation, Entry
    from remat_migrate.measure.worker.instruments.compiled import compiled
    from remat_migrate.measure.worker.instruments.flops import flops
    from remat_migrate.measure.worker.interception import LEAVE_OUT, plan

    function, arguments, how = case
    entry = Entry(function, arguments, {}, Differentiation(**how))
    cost = sites.trace(entry, {})
    bare = sites.trace(entry, {}, LEAVE_OUT)
    found: dict[str, Any] = {
        "peak": cost.peak_bytes,
        "flops": cost.flops,
        "kept": cost.residual_bytes,
        "added": cost.flops - bare.flops,
    }
    if entry.how.by != NONE:
        found["forward"] = flops(entry.forward_jaxpr())
    if asked.verdicts:
        found["sites"] = [
            [site.function.rpartition(".")[2], site.applications, site.verdict]
            for site in sites.measure(entry).measurements
        ]
    if asked.compile:
        with plan({}):
            found["temporary"] = compiled(entry).temporary
    return found


def shown(found: dict[str, Any]) -> str:
    """Format a row as a line."""
    cells = [f"{found['table']}: {found['row']:42}", f"peak {found['peak'] / 1e6:7.0f} MB"]
    if "forward" in found:
        cells.append(f"+{found['added'] / found['forward']:.2f} forward")
        cells.append(f"kept {found['kept'] / 1e6:7.0f} MB")
    else:
        cells.append(f"{found['flops'] / 1e9:7.0f} GFLOP")
    if "temporary" in found:
        cells.append(f"compiled {found['temporary'] / 1e6:7.0f} MB")
    cells += [
        f"{function} ({times}): {verdict}" for function, times, verdict in found.get("sites", ())
    ]
    return "  ".join(cells)


if __name__ == "__main__":
    main()
