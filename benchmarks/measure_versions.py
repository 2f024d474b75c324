"""Compare the results of `remat-migrate measure` between versions of JAX.

    python benchmarks/measure_versions.py PYTHON [PYTHON ...] [--remat3] [--compile]

    python benchmarks/measure_versions.py ~/jax-0.4.30/bin/python ~/jax-0.12/bin/python

Each PYTHON is an interpreter with jax; remat-migrate runs in the interpreter that runs this. The
programs are those of fixtures/measured/versions/targets.toml. Prints a line for each program and
version that differs from the newest version, or with `--all` for every one. Exits with 1 if the
lines or the number of applications of the checkpoints are not those in the fixture, or if the peak
or the operations, with or without checkpoints, differ from the newest version by more than
`--peak-share` or `--flops-share`; with 2 if an interpreter cannot be used.

The shares allow for these differences between versions:

- Up to 0.11, a `cond` returns its inputs as residuals: 10 % of the peak of `branches`.
- Up to 0.9, the derivative of `x**2` needs one more operation and array: 0.2 % of the operations
  and 5 % of the peak of `derivative_of_batch`.
- Up to 0.5, cotangents are summed in a different order: 4 % of the peak of `batched` and
  `around_custom`, 3 % of the peak of scans without checkpoints.
- Up to 0.6, the VJP of a scan keeps zeros for the tangents of its carry, and up to 0.5 the VJP of a
  `custom_vjp` keeps more of its arguments. This adds residuals, but does not raise the peak.
  Residuals are shown, but not compared.

Not covered by the programs: up to 0.11, `tanh` keeps two arrays for its derivative instead of one.
The compiled program (`--compile`) is shown, but not compared: XLA differs between versions, and up
to jax 0.10 it undoes the checkpoints of some loops. Under `--remat3`, policies have other meanings,
which also differ between 0.10, 0.11 and 0.12: only versions with the flag can be compared, and
`everything`, `whole` and `derivative_of_batch` differ.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from remat_migrate.errors import RematMigrateError
from remat_migrate.measure.measurement import Measurement
from remat_migrate.measure.options import MeasureOptions
from remat_migrate.measure.session import measure
from remat_migrate.measure.target import parse_target

MODELS = Path(__file__).parents[1] / "fixtures" / "measured" / "versions"
LEAST_PEAK_SHARE, LEAST_FLOPS_SHARE = 0.11, 0.005

Found = Mapping[str, Measurement]


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest differences from the newest version, as shares."""

    peak: float
    flops: float


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Compare versions of JAX.")
    parser.add_argument("pythons", type=Path, nargs="+", metavar="PYTHON")
    parser.add_argument("--remat3", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--all", action="store_true", help="also show lines without differences")
    parser.add_argument("--peak-share", type=float, default=LEAST_PEAK_SHARE)
    parser.add_argument("--flops-share", type=float, default=LEAST_FLOPS_SHARE)
    given = parser.parse_args()
    options = MeasureOptions(remat3=given.remat3, compile=given.compile)
    limits = Limits(given.peak_share, given.flops_share)
    try:
        found = [measured(python.expanduser().absolute(), options) for python in given.pythons]
    except RematMigrateError as error:
        print(error, file=sys.stderr)
        return 2
    found.sort(key=version, reverse=True)
    print(HEAD)
    failures = []
    for target, newest in found[0].items():
        for each in found:
            differences = list(differing(each[target], newest, limits))
            wrong = list(misplaced(target, each[target]))
            failures += [f"{target} under jax {each[target].jax}: {what}" for what in wrong]
            failures += [
                f"{target} under jax {each[target].jax}: {what}"
                for what, too_far in differences
                if too_far
            ]
            if given.all or each is found[0] or differences or wrong:
                print(line(target, each[target], [what for what, _ in differences]))
    print(f"\n{len(found[0])} programs under {', '.join(name(each) for each in found)}")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


def targets() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the programs: function, function that returns its arguments, options."""
    table = tomllib.loads((MODELS / "targets.toml").read_text())
    for args, of_args in table.items():
        for target, options in of_args.items():
            yield target, args, options


def measured(python: Path, options: MeasureOptions) -> Found:
    """Measure all programs under an interpreter."""
    running = replace(options.running, python=python)
    found = {}
    for target, args, how in targets():
        chosen = replace(options, args=args, running=running, **how)
        found[target] = measure(parse_target(target, MODELS), chosen, MODELS)
    return found


def version(found: Found) -> tuple[int, ...]:
    """Return the version of JAX as numbers."""
    return tuple(map(int, re.findall(r"\d+", name(found))))


def name(found: Found) -> str:
    """Return the version of JAX."""
    return next(iter(found.values())).jax


def differing(
    found: Measurement, newest: Measurement, limits: Limits
) -> Iterator[tuple[str, bool]]:
    """Yield the figures that differ by more than 0.05 %, and whether they exceed the limits."""
    for what, here, there, share in (
        ("peak", found.cost.peak_bytes, newest.cost.peak_bytes, limits.peak),
        ("flops", found.cost.flops, newest.cost.flops, limits.flops),
        ("kept", found.cost.residual_bytes, newest.cost.residual_bytes, float("inf")),
        ("peak without", found.bare.peak_bytes, newest.bare.peak_bytes, limits.peak),
        ("flops without", found.bare.flops, newest.bare.flops, limits.flops),
        ("forward", found.forward_flops, newest.forward_flops, limits.flops),
    ):
        if here != there:
            change = here / there - 1 if here and there else float("inf")
            if abs(change) > 0.0005:
                yield f"{what} {change:+.1%}", abs(change) > share


def misplaced(target: str, found: Measurement) -> Iterator[str]:
    """Yield the lines whose number of applications differs from the fixture."""
    here = {(site.path.name, site.line): site.applications for site in found.sites}
    there = dict(marked(target.partition(":")[2]))
    for place in sorted(here.keys() | there.keys()):
        if here.get(place) != there.get(place):
            path, number = place
            yield f"{path}:{number} applied {here.get(place)} times, not {there.get(place)}"


def marked(function: str) -> Iterator[tuple[tuple[str, int], int]]:
    """Yield the lines with comments such as `# 4 times in loop`, and the number."""
    for path in MODELS.glob("*.py"):
        for number, text in enumerate(path.read_text().splitlines(), 1):
            for times, where in re.findall(r"(\d+) times? in (\w+)", text.partition("#")[2]):
                if where == function:
                    yield (path.name, number), int(times)


HEAD = (
    f"{'program':<32} {'jax':<9} {'peak':>9} {'without':>9} {'kept':>9} {'flops':>8} {'without':>8}"
    f" {'forward':>8} {'compiled':>9}  relative to the newest"
)


def line(target: str, found: Measurement, differences: list[str]) -> str:
    """Format a line of the table: bytes in kB, operations in millions."""
    kept = found.cost.residual_bytes
    sizes = [found.cost.peak_bytes, found.bare.peak_bytes, kept]
    counts = [found.cost.flops, found.bare.flops, found.forward_flops]
    columns = [f"{target:<32} {found.jax:<9}"]
    columns += [f"{'-' if size is None else f'{size / 1e3:.1f}':>9}" for size in sizes]
    columns += [f"{count / 1e6:>8.2f}" for count in counts]
    compiled = found.compiled_bytes
    columns += [f"{'-' if compiled is None else f'{compiled / 1e3:.1f}':>9}"]
    return " ".join(columns) + "  " + ", ".join(differences)


if __name__ == "__main__":
    sys.exit(main())
