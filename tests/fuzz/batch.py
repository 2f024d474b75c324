"""Check a folder of generated files on the command line, in processes that vary what must not
matter.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from .subject import Files, Wrong

# PYTHONHASHSEED, and whether to name the files one by one, in another order.
WAYS = (("0", False), ("1", True), ("77", True), ("random", False))


def check_batch(files: Files, folder: Path, ways: int = len(WAYS)) -> None:
    """Report and fix the same files in several ways; `--diff` must be a patch with the result of
    `--fix`.

    Raises:
        Wrong: two reports or two results differ, or a diff does not match the result.
    """
    reports, results = [], []
    for number, (seed, named) in enumerate(WAYS[:ways]):
        tree = folder / f"way{number}" / "project"
        _write(tree, files)
        names = sorted([*files, "pyproject.toml"])
        if named:
            random.Random(number).shuffle(names)
        paths = names if named else ["."]
        options = ["--no-cache", *paths]
        reports.append(_run(tree, seed, "--output-format", "json", *options))
        if number == 0:
            difference = _run(tree, seed, "--diff", *options)
        _run(tree, seed, "--fix", *options)
        results.append({name: (tree / name).read_bytes() for name in files})
        if reports[-1] != reports[0]:
            raise Wrong(f"way {number} reports other findings than way 0: see {folder}")
        for name in files:
            if results[-1][name] != results[0][name]:
                raise Wrong(f"way {number} fixes {name} differently from way 0")
    patched = folder / "patched"
    _write(patched, files)
    if difference:
        _apply(patched, difference)
    for name in files:
        if (patched / name).read_bytes() != results[0][name]:
            raise Wrong(f"the diff of {name} is not what --fix writes")


def _write(folder: Path, files: Files) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "pyproject.toml").write_text("")


def _run(folder: Path, seed: str, *arguments: str) -> bytes:
    ran = subprocess.run(
        [sys.executable, "-m", "remat_migrate", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
    )
    if ran.returncode not in (0, 1):
        raise Wrong(f"exit code {ran.returncode}: {ran.stderr.decode(errors='replace')[-2000:]}")
    return ran.stdout


def _apply(folder: Path, difference: bytes) -> None:
    """Apply the diff with `git apply`."""
    ran = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-p1", "-"],
        input=difference,
        cwd=folder,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)},
        capture_output=True,
    )
    if ran.returncode:
        raise Wrong(f"git apply refuses --diff: {ran.stderr.decode(errors='replace')[-500:]}")
