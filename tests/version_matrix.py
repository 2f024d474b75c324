"""Run the rules' examples under several releases of JAX and compare with what each rule says.

    python tests/version_matrix.py                        # the newest JAX of each available Python
    python tests/version_matrix.py --jax 0.4.38 --jax 0.8.2

Creates a virtual environment for each below `build/matrix` (reused by later runs) and runs every
example that has code to run. Prints, for each rule, how many programs fail, are silently wrong, or
work, as the rule says for that release, and then the programs with another outcome. Exits with 1 if
there are any.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from example_programs import Program, programs, run

FOLDER = Path(__file__).parents[1] / "build" / "matrix"
PYTHONS = ("3.11", "3.12", "3.13")
LIBRARIES = ("flax", "dm-haiku", "equinox")


def main() -> int:
    """Run the examples under each release; return 1 if an outcome is not the expected one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--python", action="append", metavar="3.X", help="with its newest JAX")
    parser.add_argument("--jax", action="append", default=[], metavar="VERSION")
    parser.add_argument("--interpreter", action="append", default=[], metavar="PATH")
    chosen = parser.parse_args()
    interpreters = [*chosen.interpreter]
    for version in chosen.python or ([] if chosen.jax or chosen.interpreter else PYTHONS):
        if found := _python(version):
            interpreters.append(_environment(f"python{version}", found, ["jax", *LIBRARIES]))
    for release in chosen.jax:
        old = [f"jax=={release}", f"jaxlib=={release}", *LIBRARIES]
        interpreters.append(_environment(f"jax{release}", sys.executable, old))
    listed = list(programs())
    wrong = 0
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    for interpreter in interpreters:
        jax, ended = run(interpreter, listed, env)
        wrong += _show(interpreter, jax, listed, ended)
    return 1 if wrong or not interpreters else 0


def _show(interpreter: str, jax: str, listed: Sequence[Program], ended: dict[str, str]) -> int:
    """Print the outcomes under one release; return the number of unexpected ones."""
    python = subprocess.run(
        [interpreter, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    print(f"\njax {jax}, Python {python}")
    print("rule     fails  silent  works  otherwise")
    rows: dict[str, Counter[str]] = {}
    others = []
    for program in listed:
        kind = "works" if program.name.endswith("after") or "right" in program.name else "silent"
        if "No module named" in ended[program.name]:
            continue  # a library that has no release for this interpreter
        if not program.is_right(jax, ended[program.name]):
            kind = "otherwise"
            others.append(f"{program.name}: {ended[program.name] or 'does not fail'}")
        elif program.should_fail(jax):
            kind = "fails"
        rows.setdefault(program.name.split()[0], Counter())[kind] += 1
    for code, counts in sorted(rows.items()):
        print(
            f"{code}  {counts['fails']:>6} {counts['silent']:>7} {counts['works']:>6}"
            f" {counts['otherwise']:>10}"
        )
    for line in others:
        print(line)
    return len(others)


def _python(version: str) -> str | None:
    """Return the path of a Python version, from PATH or from pyenv."""
    candidates = [f"python{version}"]
    if pyenv := shutil.which("pyenv"):
        prefix = subprocess.run([pyenv, "prefix", version], capture_output=True, text=True)
        candidates.append(str(Path(prefix.stdout.strip(), "bin", "python3")))
    for candidate in candidates:
        ask = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"
        try:
            said = subprocess.run([candidate, "-c", ask], capture_output=True, text=True)
        except OSError:
            continue
        if said.returncode == 0 and said.stdout.split()[0] == version:
            return said.stdout.split()[1]
    print(f"Python {version}: not found, skipped", file=sys.stderr)
    return None


def _environment(name: str, python: str, packages: Sequence[str]) -> str:
    """Return the interpreter of a virtual environment with some packages, creating it if needed."""
    folder = FOLDER / name
    interpreter = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([interpreter, "-m", "pip", "install", "-q", *packages], check=True)
        (folder / "complete").touch()
    return str(interpreter)


if __name__ == "__main__":
    sys.exit(main())
