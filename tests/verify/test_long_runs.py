"""Verdicts come in order and survive an interrupt; `--strict` fails for what was not compared."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support import cli, heed_signals, read_files, write_files

from remat_migrate.engine.run import silent
from remat_migrate.errors import VerificationError
from remat_migrate.verify.evidence import Outcome, Unit, Verdict
from remat_migrate.verify.schedule import decide_all

UNITS = [Unit(Path("model.py"), f"unit_{number}") for number in range(8)]

# The second unit says by a file that it runs, and does not come back.
_WAITS = """\
import pathlib, time
import jax
import jax.numpy as jnp

def first(x):
    return jax.checkpoint(jnp.tanh{option})(x)

def second(x):
    pathlib.Path({marker!r}).touch()
    time.sleep(600)
    return jax.checkpoint(jnp.sin{option})(x)
"""

# Only declared calls may write a file.
_DECLARED = """\
import jax.numpy as jnp

CASES = {"model.second": lambda: (jnp.ones(3),)}
"""

_CRASHES = """\
import os, signal
import jax.numpy as jnp

def first(x):
    os.write(1, b"printed by another unit\\n")
    return jnp.tanh(x) * {factor}

def second(x):
    signal.raise_signal(11)
    return jnp.sin(x) * {factor}
"""


def test_an_error_ends_the_run():
    stop = threading.Event()

    def decide(unit: Unit) -> Verdict:
        if unit is UNITS[1]:
            raise VerificationError("the worker does not start")
        stop.wait(10)
        return Verdict(unit, Outcome.EQUAL)

    with pytest.raises(VerificationError):
        decide_all(UNITS, decide, [], silent, stop)
    assert stop.is_set()


def test_the_unit_that_is_waited_for_is_shown():
    shown: list[tuple[str, int, int]] = []
    found: list[Verdict] = []
    decide_all(
        UNITS,
        lambda unit: Verdict(unit, Outcome.EQUAL),
        found,
        lambda *step: shown.append(step),
        threading.Event(),
    )
    assert [verdict.unit for verdict in found] == UNITS
    assert shown[0] == (UNITS[0].name, 0, 8)
    assert shown[-1] == ("", 8, 8)


def interrupted(folder: Path, number: int, *arguments: str) -> tuple[int, str, str]:
    """Run the tool until `second` runs, interrupt it, and return what it says."""
    marker = folder.parent / "runs"
    run = subprocess.Popen(
        [sys.executable, "-m", "remat_migrate", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,
    )
    deadline = time.monotonic() + 120
    while not marker.exists() and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    return run.returncode, out, err


def test_an_interrupted_run_reports_its_verdicts(tmp_path: Path) -> None:
    marker = str(tmp_path / "runs")
    for name, option in (("old", ""), ("new", ", prevent_cse=True")):
        source = _WAITS.format(option=option, marker=marker)
        write_files(
            tmp_path / name, {"pyproject.toml": "", "model.py": source, "cases.py": _DECLARED}
        )
    arguments = ["verify", "--base", "../old", "--cases", "cases.py"]
    code, out, _ = interrupted(tmp_path / "new", signal.SIGTERM, *arguments)
    assert code == 128 + signal.SIGTERM
    first, last = out.splitlines()
    assert first.startswith("equal ")
    assert last == "Compared 1 unit: 1 equal. Interrupted: 1 unit not compared."

    Path(marker).unlink()
    written = ["--output-format", "json", "--output-file", "report.json"]
    code, _, _ = interrupted(tmp_path / "new", signal.SIGINT, *arguments, *written)
    assert code == 128 + signal.SIGINT
    report = json.loads((tmp_path / "new" / "report.json").read_text())
    assert report["complete"] is False
    assert report["summary"]["left"] == 1
    assert [row["unit"] for row in report["verdicts"]] == ["model.first"]


def test_interrupted_fixes_are_not_written(tmp_path: Path) -> None:
    project = tmp_path / "project"
    source = _WAITS.format(option=", concrete=True", marker=str(tmp_path / "runs"))
    write_files(project, {"pyproject.toml": "", "model.py": source, "cases.py": _DECLARED})
    before = read_files(project)
    code, _, err = interrupted(project, signal.SIGINT, "--fix", "--verify", "--cases", "cases.py")
    assert code == 128 + signal.SIGINT
    assert err.splitlines()[-2:] == [
        "Compared 1 unit: 1 equal. Interrupted: 1 unit not compared.",
        "No files changed.",
    ]
    assert read_files(project) == before


def test_what_was_not_compared_fails_if_strict(tmp_path: Path) -> None:
    for name, factor in (("old", "2.0"), ("new", "(1.0 + 1.0)")):
        source = _CRASHES.format(factor=factor)
        write_files(tmp_path / name, {"pyproject.toml": "", "model.py": source})
    arguments = ["verify", "--base", "../old", "--output-format", "json"]
    ran = cli(tmp_path / "new", *arguments)
    assert ran.code == 0
    report = json.loads(ran.out)
    assert report["complete"] is True
    first, second = report["verdicts"]
    assert first["verdict"] == "equal"
    assert "was killed by SIGSEGV" in second["detail"]
    # What earlier requests printed is not part of the message.
    assert "another unit" not in second["detail"]
    assert cli(tmp_path / "new", *arguments, "--strict").code == 3
