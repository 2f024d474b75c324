"""Command line of the benchmark, see the package."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
from pathlib import Path

from . import __doc__ as what_it_is
from .cases import CASES, Bench
from .figures import Row, rows_table
from .installations import ROOT, Installations
from .processes import BenchmarkError


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser("python -m benchmarks.speed", None, what_it_is)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--runs", type=int, default=5, help="runs of each command (default: 5)")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=CASES,
        default=[*CASES],
        metavar="CASE",
        help=f"measure only these cases: {', '.join(CASES)}",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=ROOT / "build" / "benchmarks",
        help="folder for installations and generated files (default: build/benchmarks)",
    )
    given = parser.parse_args()
    if given.runs < 1:
        parser.error("--runs must be at least 1")
    installations = Installations(given.folder.resolve())
    installations.folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(installations, given.runs)
    try:
        _measure(bench, given.only)
    except BenchmarkError as error:
        sys.exit(f"error: {error}")


def _measure(bench: Bench, only: list[str]) -> None:
    """Run the cases, and print their tables."""
    facts, found = machine(), list[Row]()
    for name in only:
        print(f"{name}:", file=sys.stderr, flush=True)
        found += CASES[name](bench)
    print(_heading(facts, bench))
    print("\n" + rows_table(found))
    missed = [one.what for one in found if one.reached is False]
    judged = [one for one in found if one.reached is not None]
    if judged:
        print(f"\n{len(judged) - len(missed)} of {len(judged)} targets reached.")
    for what in missed:
        print(f"- missed: {what}")


def _heading(facts: dict[str, str], bench: Bench) -> str:
    """Describe the machine, the versions and the date."""
    machine = ", ".join(f"{name} {value}" for name, value in facts.items())
    versions = bench.installations.versions()
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    runs = bench.runs
    many = f"medians of {runs} alternating runs" if runs > 1 else "one run"
    told = f"{datetime.date.today()}; {many}; {machine}.\n\nVersions: {named}."
    if float(facts["load at the start"]) > float(facts["cores"]) / 2:
        told += "\n\nThe machine was busy: compare ratios rather than times."
    return told


def machine() -> dict[str, str]:
    """Return processor, cores, system, and load."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.machine(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.release()}",
        "load at the start": f"{os.getloadavg()[0]:.2f}",
    }


if __name__ == "__main__":
    main()
