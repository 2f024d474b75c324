"""A slice of `kills.py`; all of it is slow. In processes of its own: it forks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = Path(__file__).with_name("kills.py")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of itself")


def campaigns(*options: str) -> dict[str, str]:
    """What each campaign counted, by name; none may have found anything wrong."""
    done = subprocess.run(
        [sys.executable, KILLS, *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counted = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert all(counts.endswith("; 0 wrong") for counts in counted.values())
    return counted


def test_killed_at_sampled_calls() -> None:
    found = campaigns("--only", "points", "--points", "3", "--seed", "2")
    assert list(found) == ["kill points of --fix", "kill points of undo"]
    for counts in found.values():
        assert int(re.findall(r"(\d+) killed", counts)[0]) >= 3
        assert int(re.findall(r"(\d+) calls", counts)[0]) > 100


def test_folders_exchanged_at_sampled_calls() -> None:
    found = campaigns("--only", "exchanges", "--points", "2", "--seed", "3")
    assert list(found) == [
        "--fix, another process exchanges a folder",
        "undo, another process exchanges a folder",
    ]
    for counts in found.values():
        assert int(re.findall(r"(\d+) told", counts)[0]) > 0


def test_power_loss_after_any_call() -> None:
    found = campaigns("--only", "power", "--points", "5")
    assert list(found) == ["power loss in --fix", "power loss in undo"]
    assert all(int(counts.split()[0]) > 1000 for counts in found.values())


@pytest.mark.slow
def test_killed_at_every_call() -> None:
    assert len(campaigns("--only", "points")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("campaign", ["faults", "edits"])
def test_faults_and_concurrent_edits_at_sampled_calls(campaign: str) -> None:
    assert len(campaigns("--only", campaign, "--points", "20")) == 10


@pytest.mark.slow
def test_folders_exchanged_at_every_call() -> None:
    assert len(campaigns("--only", "exchanges")) == 2


@pytest.mark.slow
def test_real_processes() -> None:
    assert len(campaigns("--only", "times", "twice", "disks", "--times", "30")) == 7
