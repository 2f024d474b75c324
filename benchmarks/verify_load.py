"""Compare what `verify` covers with and without load: every run must report the same.

    python benchmarks/verify_load.py [fixtures/old_trainer] [--runs 5] [--loops 2]

Fixes a copy of the project, verifies it several times, half of the runs beside processes that keep
the cores busy, and compares the verdicts with all their details. Exits with 1 if runs differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from verify_cost import TOOL, copy

_BUSY = "while True: pass"


def main() -> None:
    """Verify repeatedly, and print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("project", type=Path, nargs="?", default=Path("fixtures/old_trainer"))
    parser.add_argument("--runs", type=int, default=5, help="runs with, and runs without load")
    parser.add_argument("--loops", type=int, default=2, help="busy processes")
    given = parser.parse_args()
    reports = []
    with tempfile.TemporaryDirectory() as scratch:
        base = copy(given.project, Path(scratch) / "base")
        working = copy(given.project, Path(scratch) / "working")
        run([*TOOL, "--fix", str(working)])
        for number in range(2 * given.runs):
            loops = given.loops * (number % 2)
            with busy(loops):
                started = time.perf_counter()
                report = verdicts(base, working)
                seconds = time.perf_counter() - started
            reports.append(report)
            same = "same" if report == reports[0] else "different"
            print(
                f"{loops} busy loops: {seconds:.1f} s, {len(report)} verdicts, {same}", flush=True
            )
            for unit in report:
                if report[unit] != reports[0].get(unit):
                    print(f"  {unit}: {report[unit]}\n  but was: {reports[0].get(unit)}")
    sys.exit(any(report != reports[0] for report in reports))


def verdicts(base: Path, working: Path) -> dict[str, Any]:
    """Return what `verify` reports of each unit."""
    report = working.parent / "report.json"
    written = ["--output-format", "json", "--output-file", str(report)]
    run([*TOOL, "verify", "--base", str(base), *written], working)
    rows = json.loads(report.read_text())["verdicts"]
    return {row.pop("unit"): row for row in rows}


def run(command: list[str], folder: Path | None = None) -> None:
    """Run the tool, whatever it finds."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep processes busy meanwhile."""
    processes = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
