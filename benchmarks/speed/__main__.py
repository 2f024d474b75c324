"""Command line of the benchmark, see the package."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path
from typing import Any

from . import __doc__ as what_it_is
from .cases import CASES, Bench
from .figures import Row, rows_table
from .installations import ROOT, Installations
from .machine import machine
from .processes import BenchmarkError

# Tools that several cases compare with.
_TOOLS = ("ruff", "grep")


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description=what_it_is,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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
        "--skip",
        nargs="+",
        choices=[*CASES, *_TOOLS],
        default=[],
        metavar="CASE",
        help=f"skip these cases or tools ({', '.join(_TOOLS)})",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=ROOT / "build" / "benchmarks",
        help="folder for installations and generated files (default: build/benchmarks)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every run to a file")
    given = parser.parse_args()
    if given.runs < 1:
        parser.error("--runs must be at least 1")
    installations = Installations(given.folder.resolve())
    installations.folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(installations, given.runs, frozenset(given.skip))
    try:
        content = _measure(bench, given.only)
    except BenchmarkError as error:
        sys.exit(f"error: {error}")
    if given.json:
        given.json.write_text(json.dumps(content, indent=1) + "\n")


def _measure(bench: Bench, only: list[str]) -> dict[str, Any]:
    """Run the cases, print their tables, and return the content for JSON."""
    about, found = _about(bench), list[Row]()
    for name in only:
        if name not in bench.skipped:
            print(f"{name}:", file=sys.stderr, flush=True)
            found += CASES[name](bench)
    about["versions"] = bench.installations.versions()
    print(_heading(about, bench.runs))
    print("\n" + rows_table(found))
    missed = [one.what for one in found if one.reached is False]
    judged = [one for one in found if one.reached is not None]
    if judged:
        print(f"\n{len(judged) - len(missed)} of {len(judged)} targets reached.")
    for what in missed:
        print(f"- missed: {what}")
    return {**about, "rows": [row.content() for row in found]}


def _about(bench: Bench) -> dict[str, Any]:
    return {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "runs": bench.runs,
    }


def _heading(about: dict[str, Any], runs: int) -> str:
    """Describe the machine, the versions and the date."""
    machine = ", ".join(f"{name} {value}" for name, value in about["machine"].items())
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    many = f"medians of {runs} alternating runs" if runs > 1 else "one run"
    told = f"{about['date']}; {many}; {machine}.\n\nVersions: {versions}."
    if float(about["machine"]["load at the start"]) > float(about["machine"]["cores"]) / 2:
        told += "\n\nThe machine was busy: compare ratios rather than times."
    return told


if __name__ == "__main__":
    main()
