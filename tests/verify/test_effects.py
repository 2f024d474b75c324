"""Calls with generated inputs start no programs and change no files outside of the run's folder."""

from __future__ import annotations

import json
from pathlib import Path

from support import cli, write_files

UNITS = """
import functools, logging, os, subprocess, sys

def touches(x, path={outside!r}):
    subprocess.run(["touch", path])
    return {result}

@functools.lru_cache
def has_tool():
    try:
        return subprocess.run(["touch", {outside!r}]).returncode == 0
    except Exception:
        return False

def falls_back(x, flip=False):
    if has_tool():
        x = x + 1
    return {result}

def writes(x):
    with open({outside!r}, "w") as file:
        file.write("x")
    return {result}

def logs(x, save=False):
    import late
    print("computing", x.shape)
    logging.warning("computing")
    if save:
        os.mkdir({outside!r})
    os.makedirs("outputs", exist_ok=True)
    with open("outputs/log", "a") as file:
        file.write(late.FOUND)
    return {result}
"""
LATE = """
import subprocess
FOUND = subprocess.run(["echo", "found"], capture_output=True, text=True).stdout
"""
CASES = """
import numpy as np

def asked_for():
    return (np.ones(2),)
"""
ASKED_FOR = """
import subprocess

def asked_for(x):
    subprocess.run(["true"], check=True)
    return {result}
"""


def test_effects_of_generated_calls(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    for side, result in (("base", "x * 2.0"), ("working", "2.0 * x")):
        files = {
            "pyproject.toml": "",
            "late.py": LATE,
            "units.py": UNITS.format(outside=str(outside), result=result),
            "asked.py": ASKED_FOR.format(result=result),
            "cases.py": CASES,
        }
        write_files(tmp_path / side, files)
    arguments = ("--base", "../base", "--cases", "cases.py", "--output-format", "json")
    ran = cli(tmp_path / "working", "verify", *arguments)
    found = {v["unit"].rpartition(".")[2]: v for v in json.loads(ran.out)["verdicts"]}
    assert {name: verdict["verdict"] for name, verdict in found.items()} == {
        "asked_for": "equal",
        "falls_back": "not-exercised",
        "logs": "equal",
        "touches": "not-exercised",
        "writes": "not-exercised",
    }
    rest = ", which is allowed only in declared cases, commands, and tests"
    for name in ("falls_back", "touches"):
        assert found[name]["detail"] == "it starts a program (touch)" + rest
    assert found["writes"]["detail"] == f"it writes to {outside}{rest}"
    assert not outside.exists()
