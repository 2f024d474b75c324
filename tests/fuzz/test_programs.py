"""A few generated programs; `python -m tests.fuzz` tries ten thousand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz.campaign import failures
from fuzz.checkpoint_programs import program
from fuzz.drawing import Draw
from fuzz.execution import Workers
from fuzz.trial import Fixed, Trial, Wrong

SEED = 8
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers() as started:
        yield started


@pytest.mark.parametrize("size", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_values_and_gradients_are_unchanged(size: int, tmp_path: Path, workers: Workers) -> None:
    trial = Trial(tmp_path, workers)
    found = failures(trial, SEED, range(size))
    assert not found, "\n".join(found)
    assert trial.counts["tried"] == size
    assert min(trial.counts["executed"], trial.counts["fixed"]) >= size / 4


def test_fixes_parse_and_are_idempotent(tmp_path: Path, workers: Workers) -> None:
    trial = Trial(tmp_path, workers)
    for number in range(10, 22):
        texts = program(Draw(f"{SEED}/{number}"))
        assert texts == program(Draw(f"{SEED}/{number}"))
        trial.fixed(texts, unsafe=number % 2 == 1)


FLAG = """\
import jax
import jax.numpy as jnp


def block(x, flag):
    return jnp.sin(x) if flag else x


block = jax.checkpoint(block, concrete=True)


def use_0():
    return jax.grad(lambda x: block(x, True))(1.0)
"""


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("jnp.sin(x) if", "jnp.cos(x) if", "result differs"),
        ("static_argnums=(1,)", "", "fails after the fix: TracerBoolConversionError"),
    ],
)
def test_a_wrong_fix_is_detected(
    old: str, new: str, problem: str, tmp_path: Path, workers: Workers, monkeypatch
) -> None:
    trial = Trial(tmp_path, workers)
    trial({"main.py": FLAG})
    fixed = trial.fixed({"main.py": FLAG})
    assert old in fixed.texts["main.py"]
    broken = Fixed({"main.py": fixed.texts["main.py"].replace(old, new)}, ())
    monkeypatch.setattr(trial, "fixed", lambda *given, **options: broken)
    with pytest.raises(Wrong, match=problem):
        trial({"main.py": FLAG})


def test_the_command() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--examples", "1"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "1 tried" in ran.stdout
