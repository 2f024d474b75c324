"""Programs in the style of training code: migrated, run before and after, and compared.

    python tests/programs.py [FOLDER] [--only NAME]... [--tool COMMAND] [--diff]

Each subfolder of FOLDER (by default `fixtures/programs`) is one project: a package whose module
`run` has a function `main()` that returns a pytree of arrays: values, gradients, parameters. The
expected result is that of the old code with every checkpoint replaced by the plain function. The
docstring of `run` may have the line `By hand: REASON`, if no tool can migrate the program, and the
line `Tolerance: NUMBER`, relative to the largest entry, if it computes in half precision.

Outcomes: `equal`; `by hand` (findings of broken code remain, as the program says they must); `left`
(findings remain, but the program could be migrated); `broken` (it raises or differs after the fix,
and no finding says so); `invalid` (the original program does not run). Exits with 1 if any program
is broken or invalid.
"""

from __future__ import annotations

import argparse
import collections
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PROGRAMS = Path(__file__).parents[1] / "fixtures" / "programs"
RUNNER = Path(__file__).parent / "behaviour" / "run_programs.py"
BATCH = 12
# float32; a checkpoint is compiled, so it is rounded differently from the plain function.
RTOL = 2e-5
ATOL = 1e-7
# Rules for code that fails or computes something else.
BREAKING = re.compile(r"RMT[01245]")

Arrays = dict[str, np.ndarray]
Outcome = Arrays | str


@dataclass(frozen=True)
class Result:
    """The outcome of one program."""

    name: str
    outcome: str
    detail: str = ""
    diff: str = ""


def try_programs(
    folder: Path, names: Sequence[str], tool: Sequence[str], *, together: bool = False
) -> Iterator[Result]:
    """Migrate and run the programs `names` of `folder`.

    With `together`, they form one project, which needs a single run of the tool and two JAX
    processes.
    """
    with tempfile.TemporaryDirectory() as scratch:
        before, after = Path(scratch, "before"), Path(scratch, "after")
        for copy in (before, after):
            copy.mkdir()
            for name in names:
                ignore = shutil.ignore_patterns("__pycache__", ".remat_migrate")
                shutil.copytree(folder / name, copy / name, ignore=ignore)
        groups = [names] if together else [[name] for name in names]
        left = {name: found for group in groups for name, found in _fix(after, group, tool)}
        size = len(names) if together else BATCH
        expected = _run(before, names, "plain", size)
        actual = _run(after, names, "real", size)
        for name in names:
            yield _judge(before, after, name, left[name], expected[name], actual[name])


def _fix(
    folder: Path, names: Sequence[str], tool: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """Apply the safe fixes; yield the remaining findings of each program."""
    ran = subprocess.run(
        [*tool, "--fix", "--no-cache", "--output-format", "json", *names],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    for name in names:
        if ran.returncode not in (0, 1):
            yield name, [f"the tool failed: {ran.stderr.strip()[-500:]}"]
            continue
        yield (
            name,
            [
                f"{f['path']}:{f['line']} {f['code']} {f['message']}"
                for f in json.loads(ran.stdout)["findings"]
                if BREAKING.match(f["code"]) and f["path"].startswith(f"{name}/")
            ],
        )


def _run(folder: Path, names: Sequence[str], mode: str, size: int) -> dict[str, Outcome]:
    """Return the result or the traceback of `main()` of each program; `size` programs share a
    process.
    """
    found: dict[str, Outcome] = {}
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(folder),
    }
    for start in range(0, len(names), size):
        batch = names[start : start + size]
        with tempfile.TemporaryDirectory() as output:
            targets = [f"{name}.run:main" for name in batch]
            ran = subprocess.run(
                [sys.executable, RUNNER, mode, output, *targets],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
            )
            for name in batch:
                failure = Path(output, f"{name}.run.main.txt")
                values = Path(output, f"{name}.run.main.npz")
                if values.exists():
                    with np.load(values) as arrays:
                        found[name] = dict(arrays)
                else:
                    text = failure.read_text() if failure.exists() else ran.stderr
                    found[name] = text[-3000:] or "it was not run"
    return found


def _judge(
    before: Path, after: Path, name: str, left: list[str], expected: Outcome, actual: Outcome
) -> Result:
    diff = _diff(before / name, after / name)
    if isinstance(expected, str):
        return Result(name, "invalid", expected, diff)
    text = (before / name / "run.py").read_text(encoding="utf-8")
    tolerance = re.search(r"^Tolerance: (\S+)", text, re.MULTILINE)
    rtol = float(tolerance[1]) if tolerance else RTOL
    problem = actual if isinstance(actual, str) else difference(expected, actual, rtol)
    by_hand = re.search(r"^By hand: (.*)", text, re.MULTILINE)
    if left:
        return Result(name, "by hand" if by_hand else "left", "\n".join(left), diff)
    if problem:
        return Result(name, "broken", problem, diff)
    return Result(name, "equal", "", diff)


def difference(expected: Arrays, actual: Arrays, rtol: float = RTOL) -> str:
    """Describe how two results differ in structure, shape, dtype or value, if they do."""
    largest = max((np.max(np.abs(a), initial=0.0) for a in expected.values()), default=0.0)
    if list(expected) != list(actual):
        return f"other structure: {list(expected)} became {list(actual)}"
    for name, array in expected.items():
        other = actual[name]
        if (array.shape, array.dtype) != (other.shape, other.dtype):
            return f"{name}: {array.dtype}{array.shape} became {other.dtype}{other.shape}"
        if not np.all(np.isfinite(array.astype(np.complex128))):
            return f"{name}: not finite"
        # A gradient that is zero up to rounding differs by as much as its own value.
        allowed = rtol * np.max(np.abs(array), initial=0.0) + ATOL * largest
        apart = np.max(np.abs(array.astype(np.complex128) - other), initial=0.0)
        if apart > allowed:
            return f"{name}: {apart} apart, {allowed} allowed"
    return ""


def _diff(before: Path, after: Path) -> str:
    lines: list[str] = []
    for path in sorted(after.rglob("*.py")):
        name = str(path.relative_to(after.parent))
        old = (before / path.relative_to(after)).read_text(encoding="utf-8").splitlines(True)
        new = path.read_text(encoding="utf-8").splitlines(True)
        lines += difflib.unified_diff(old, new, name, name)
    return "".join(lines)


def programs(folder: Path) -> list[str]:
    """Return the programs in a folder."""
    return sorted(path.parent.name for path in folder.glob("*/run.py"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the programs of a folder and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=PROGRAMS)
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--tool", default=f"{sys.executable} -m remat_migrate")
    parser.add_argument("--diff", action="store_true", help="show what was changed")
    given = parser.parse_args(arguments)
    names = [n for n in programs(given.folder) if not given.only or n in given.only]
    counts: collections.Counter[str] = collections.Counter()
    for result in try_programs(given.folder, names, given.tool.split()):
        counts[result.outcome] += 1
        print(f"{result.outcome:8} {result.name}", flush=True)
        if result.detail:
            print("    " + result.detail.rstrip().replace("\n", "\n    "))
        if given.diff:
            print(result.diff)
    print(f"{sum(counts.values())} programs: {', '.join(f'{n} {o}' for o, n in counts.items())}")
    return 1 if counts["broken"] or counts["invalid"] else 0


if __name__ == "__main__":
    sys.exit(main())
