"""Measure the claims of several documents about checkpoints, and write docs/explanation/claims.md.

    python benchmarks/claims.py [--write FILE] [--compiled-from FILE] [--part NAME]

The claims and their programs are in `fixtures/measured/claimed`. Programs are traced on shapes,
and never executed. Compiling takes most of the time: `--compiled-from docs/explanation/claims.md`
reuses the figures of compiled programs from that document. `--part stages` prints a single part.
Needs jax, and flax for the last part.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from interception import intercept_checkpoints

# Title and module of each part of the document.
PARTS = (
    ("Where a checkpoint stands", "stages"),
    ("Each policy that is listed", "policies"),
    ("What policies are for", "uses_of_policies"),
    ("Chains, loops and the compiler", "loops"),
    ("Flax modules", "modules"),
)
HEADER = """\
# Claims about checkpoints, measured

Claims of four documents about memory and recomputation, each checked by measuring programs: JEP
11830 (the new `jax.checkpoint`), JAX's tutorial on gradient checkpointing, the reference of
`jax.checkpoint`, and an exercise on `nn.remat` with policies.

Measured under jax {jax} on {backend}, on shapes only. Written by

    python benchmarks/claims.py --write docs/explanation/claims.md

"Kept" and "values" are the bytes and the number of the residuals, "peak" is the peak of live bytes
of the gradient computation in the order of its jaxpr, both without arguments. "Added" is the number
of recomputed floating-point operations, in forward passes. "Compiled" is the temporary memory of
the program compiled by XLA for this platform, which also reflects fusion, scheduling and merged
operations. Programs compute `value_and_grad` unless stated otherwise. 1 MB is a million bytes.
"""
Compiled = Callable[[str, str], int]


def main() -> None:
    """Measure all claims, and write the document."""
    parser = argparse.ArgumentParser(description="Measure claims about checkpoints.")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write to this file, not stdout")
    parser.add_argument("--compiled-from", type=Path, metavar="FILE")
    parser.add_argument("--part", choices=[module for _, module in PARTS])
    given = parser.parse_args()
    known = compiled_in(given.compiled_from.read_text()) if given.compiled_from else None
    text = document(known, given.part)
    if given.write:
        given.write.write_text(text)
    else:
        sys.stdout.write(text)


def document(known: Mapping[tuple[str, str], int] | None, part: str | None) -> str:
    """Return the document, or one part; compile the programs that are not in `known`."""
    intercept_checkpoints()
    import jax

    measured: dict[int, Any] = {}
    summary, parts = [], []
    for title, module in PARTS:
        if part not in (None, module):
            continue
        claims = importlib.import_module(f"claimed.{module}").claims()
        parts.append(f"\n## {title}")
        for claim in claims:
            rows = {
                name: row_of(make, known and known.get((claim.says, name)), measured)
                for name, make in claim.programs.items()
            }
            verdict, sentence = claim.judge(rows)
            summary.append((claim.says, claim.where, verdict))
            parts.append("\n".join(section(claim, rows, verdict, sentence)))
    if part is not None:
        return "\n".join(parts) + "\n"
    header = HEADER.format(jax=jax.__version__, backend=jax.default_backend().upper())
    return "\n".join([header, *overview(summary), *parts]) + "\n"


def row_of(make: Callable[[], Any], temporary: int | None, measured: dict[int, Any]) -> Any:
    """Return the figures of a program, which may belong to several claims."""
    if id(make) not in measured:
        # Keeps `make` alive, so that its id stays unique.
        measured[id(make)] = make, _measured(make, temporary)
    return measured[id(make)][1]


def _measured(make: Callable[[], Any], temporary: int | None) -> Any:
    from remat_migrate.measure.worker.entry import Differentiation, Entry
    from remat_migrate.measure.worker.instruments.compiled import temporary_bytes
    from remat_migrate.measure.worker.instruments.flops import flops
    from remat_migrate.measure.worker.instruments.liveness import peak
    from remat_migrate.measure.worker.instruments.residuals import residual_sizes
    from remat_migrate.measure.worker.interception import LEAVE_OUT, calls_of, plan, sites

    claimed = importlib.import_module("claimed.claim")
    try:
        program = make()
        entry = Entry(program.function, program.arguments, {}, Differentiation(**program.how))
        with plan({}):
            gradient = entry.gradient_jaxpr()
            values = residual_sizes(entry)
            if temporary is None:
                temporary = temporary_bytes(entry, entry.differentiated)
            forward = flops(entry.forward_jaxpr())
            has_checkpoints = any(map(calls_of, sites()))
        bare = flops(gradient)
        if has_checkpoints:
            with plan({}, LEAVE_OUT):
                bare = flops(entry.gradient_jaxpr())
        return claimed.Row(
            peak(gradient),
            flops(gradient),
            bare,
            forward,
            sum(values),
            len(values),
            temporary,
        )
    except (AttributeError, TypeError, ValueError) as error:
        # A claim may name an API that does not exist.
        first = str(error).partition("\n")[0].partition(". ")[0]
        return claimed.Row(error=f"{type(error).__name__}: {first}")


def overview(summary: list[tuple[str, str, str]]) -> Iterator[str]:
    """Yield a table of all claims with their verdicts."""
    counts = Counter(verdict.partition(" only if")[0:2] for _, _, verdict in summary)
    yield (
        f"Of {len(summary)} claims {counts['holds', '']} hold as written,"
        f" {counts['holds', ' only if']} under a condition, and {counts['does not hold', '']} do"
        " not.\n"
    )
    yield "| claim | where | |"
    yield "|---|---|---|"
    for says, where, verdict in summary:
        yield f"| {says} | {where} | {verdict} |"


def section(claim: Any, rows: Mapping[str, Any], verdict: str, sentence: str) -> Iterator[str]:
    """Yield a claim with its table."""
    yield f"\n### {claim.says}\n"
    yield f"{claim.where[:1].upper()}{claim.where[1:]}. {claim.note}".rstrip() + "\n"
    yield "| program | kept | values | peak | added | compiled |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, row in rows.items():
        yield f"| {name} | {cells(row)} |"
    yield f"\n**{verdict[:1].upper()}{verdict[1:]}**: {sentence}."


def cells(row: Any) -> str:
    """Return the cells of a row."""
    if row.error:
        return "an error | | | |"
    numbers = [
        f"{row.kept / 1e6:.1f} MB",
        str(row.values),
        f"{row.peak / 1e6:.1f} MB",
        f"{row.added:.3f}",
        f"{row.temporary / 1e6:.3f} MB",
    ]
    return " | ".join(numbers)


def compiled_in(text: str) -> dict[tuple[str, str], int]:
    """Return the compiled figures in a document, by claim and program."""
    found = {}
    for part in text.split("\n### ")[1:]:
        says = part.partition("\n")[0]
        for name, megabytes in re.findall(r"^\| (.+?) \|.*\| ([\d.]+) MB \|$", part, re.MULTILINE):
            found[says, name] = round(float(megabytes) * 1e6)
    return found


if __name__ == "__main__":
    main()
