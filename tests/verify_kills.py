"""Kill runs of code by signals at random times; no process and no file of them may remain.

    python tests/verify_kills.py --each 20

The runs are those of `verify`, with and without a command, `measure` and `plan` in turn. The code
under test starts processes of its own: one in the worker's session, one in a session of
its own, and one of a command in the background. Prints a line for each signal.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from support import heed_signals, write_files

SIGNALS = ("SIGTERM", "SIGHUP", "SIGKILL")
# Within so many seconds of the signal, everything must be gone; a loaded machine is slow.
PATIENCE = 60.0

_UNITS = """\
import subprocess
import jax.numpy as jnp

def first(x):
    return jnp.tanh(x) * {factor}

def second(x):
    subprocess.Popen(["sleep", "600"])
    subprocess.Popen(["sleep", "601"], start_new_session=True)
    return jnp.sin(x) * {factor}

def third(x):
    subprocess.run(["sleep", "602"])
    return jnp.cos(x) * {factor}

def arguments():
    return (jnp.ones(3),)
"""
_MEASURED = ("units:second", "--args", "units:arguments")
RUNS = {
    "verify": ("verify", "--base", "../base"),
    "command": (
        *("verify", "--base", "../base"),
        *("--command", "sleep 603 & setsid sleep 604 & sleep 605"),
    ),
    "measure": ("measure", *_MEASURED),
    "plan": ("plan", *_MEASURED, "--budget", "1GB"),
}


def make_project(root: Path) -> Path:
    """Write a project and its base; return the project."""
    for name, factor in (("base", "2.0"), ("working", "(1.0 + 1.0)")):
        write_files(root / name, {"pyproject.toml": "", "units.py": _UNITS.format(factor=factor)})
    return root / "working"


def leftovers(project: Path, name: str, delay: float, arguments: Sequence[str]) -> list[str]:
    """Send a signal to a run after some seconds; return what is still there after `PATIENCE`."""
    with tempfile.TemporaryDirectory() as scratch:
        run = subprocess.Popen(
            [sys.executable, "-m", "remat_migrate", *arguments],
            cwd=project,
            env={**os.environ, "TMPDIR": scratch, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=heed_signals,
        )
        time.sleep(delay)
        run.send_signal(getattr(signal, name))
        run.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while (left := _left(Path(scratch))) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left


def _left(scratch: Path) -> list[str]:
    """Return the processes whose temporary folder was a folder or below it, and what is in it."""
    found = [entry.name for entry in scratch.iterdir()]
    for process in psutil.process_iter():
        try:
            folder = process.environ().get("TMPDIR", "")
            if Path(folder).is_relative_to(scratch) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue  # someone else's, or just ended
    return found


def main() -> None:
    """Kill runs, and exit with 1 if one of them left something."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--each", type=int, default=20, help="runs for each signal")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long runs last at most")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    # Programs in the background ignore it, and so would the runs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        project = make_project(Path(folder))
        for name in (*SIGNALS, "SIGINT"):
            found = []
            for number in range(given.each):
                delay = draw.uniform(0.0, given.seconds)
                kind, arguments = list(RUNS.items())[number % len(RUNS)]
                for left in leftovers(project, name, delay, arguments):
                    found.append(f"  {kind}, after {delay:.2f} s: {left}")
            print(
                f"{name}: {given.each} runs, {len(found)} leftovers", *found, sep="\n", flush=True
            )
            failed |= bool(found)
    sys.exit(failed)


if __name__ == "__main__":
    main()
