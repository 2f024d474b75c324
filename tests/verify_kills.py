"""Kill runs of code by signals at random times; no process and no file of them may remain.

    python tests/verify_kills.py --each 20
    python tests/verify_kills.py --each 100 --only fix --signals SIGTERM SIGHUP SIGPIPE

The runs are those of `verify`, with and without a command, `measure`, `plan`, and `--fix --verify`
in turn. The code under test starts processes of its own: one in the worker's session, one in a
session of its own, and one of a command in the background. A file that is to be fixed is the old or
the new one, without temporary files. Prints a line for each signal.
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
from support import heed_signals, read_files, write_files

SIGNALS = ("SIGTERM", "SIGHUP", "SIGKILL")
# Within so many seconds of the signal, everything must be gone; a loaded machine is slow.
PATIENCE = 60.0
# The part of the kills that come within milliseconds of the first write.
_AT_WRITING = 0.3

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
_OLD = """\
import subprocess
import jax
import jax.numpy as jnp

subprocess.Popen(["sleep", "606"], start_new_session=True)

def {name}(x):
    return jnp.tanh(x)

{name}_layer = jax.checkpoint({name}{option})

def loss_{name}(x):
    return {name}_layer(x).sum()
"""
_FIXABLE = ("fixed_one.py", "fixed_two.py")
_MEASURED = ("units:second", "--args", "units:arguments")
RUNS = {
    "verify": ("verify", "--base", "../base"),
    "command": (
        *("verify", "--base", "../base"),
        *("--command", "sleep 603 & setsid sleep 604 & sleep 605"),
    ),
    "measure": ("measure", *_MEASURED),
    "plan": ("plan", *_MEASURED, "--budget", "1GB"),
    "fix": ("check", "--fix", "--verify", *_FIXABLE),
}


def make_project(root: Path) -> Path:
    """Write a project and its base; return the project."""
    for name, factor in (("base", "2.0"), ("working", "(1.0 + 1.0)")):
        write_files(root / name, {"pyproject.toml": "", "units.py": _UNITS.format(factor=factor)})
        write_files(root / name, _fixable(", concrete=False"))
    return root / "working"


def _fixable(option: str) -> dict[str, str]:
    return {name: _OLD.format(name=Path(name).stem, option=option) for name in _FIXABLE}


def torn(project: Path) -> list[str]:
    """Undo a killed run; return the files that it tore, and temporary files that are left."""
    found = read_files(project)
    old, new = _fixable(", concrete=False"), _fixable("")
    wrong = [name for name in _FIXABLE if found[name].decode() not in (old[name], new[name])]
    undo = [sys.executable, "-m", "remat_migrate", "undo"]
    subprocess.run(undo, cwd=project, check=False, capture_output=True)
    found = read_files(project)
    wrong += [f"{name} after undo" for name in _FIXABLE if found[name].decode() != old[name]]
    return [*wrong, *map(str, project.rglob(".remat-*.tmp"))]


def leftovers(project: Path, name: str, delay: float, arguments: Sequence[str]) -> list[str]:
    """Send a signal to a run after some seconds; return what is still there after `PATIENCE`.

    A negative delay counts from the time at which the run starts to write.
    """
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as state:
        run = subprocess.Popen(
            [sys.executable, "-m", "remat_migrate", *arguments],
            cwd=project,
            env={
                **os.environ,
                "TMPDIR": scratch,
                "XDG_STATE_HOME": state,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=heed_signals,
        )
        while (
            delay < 0 and not list(Path(state).glob("remat-migrate/*.json")) and run.poll() is None
        ):
            time.sleep(0.0002)
        time.sleep(abs(delay))
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
    parser.add_argument("--only", nargs="*", choices=RUNS, default=list(RUNS))
    parser.add_argument("--signals", nargs="*", default=[*SIGNALS, "SIGINT"])
    parser.add_argument("--seconds", type=float, default=6.0, help="how long runs last at most")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    # Programs in the background ignore it, and so would the runs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        project = make_project(Path(folder))
        for name in given.signals:
            found = []
            for number in range(given.each):
                delay = draw.uniform(0.0, given.seconds)
                kind = given.only[number % len(given.only)]
                if kind == "fix" and draw.random() < _AT_WRITING:
                    delay = -delay / 1000
                left = leftovers(project, name, delay, RUNS[kind])
                if left := [*left, *(torn(project) if kind == "fix" else ())]:
                    found.append(f"  {kind}, after {delay:.3f} s: {left}")
            print(
                f"{name}: {given.each} runs, {len(found)} leftovers", *found, sep="\n", flush=True
            )
            failed |= bool(found)
    sys.exit(failed)


if __name__ == "__main__":
    main()
