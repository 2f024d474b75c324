"""`--write-tests`: pytest files that fail on a wrong migration, without remat-migrate."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import cli, write_files

pytestmark = pytest.mark.slow

PLAIN = """\
import enum
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp


class Mode(enum.Enum):
    TRAIN = 1


class State(NamedTuple):
    x: jax.Array
    step: int


@functools.partial(jax.checkpoint, static_argnums=(1, 2, 3))
def block(state, mode, activation, sizes):
    assert mode is Mode.TRAIN
    scale = jnp.asarray(2.0, jnp.bfloat16)
    return {"y": activation(state.x) * sizes[0], "z": scale * state.step}


def make(width: int):
    @jax.checkpoint
    def inner(x):
        return jnp.sin(x) * width

    return inner
"""

CASES = """\
import jax
import jax.numpy as jnp
from package.plain import Mode, State


def block():
    return State(jnp.arange(6.0).reshape(2, 3), 3), Mode.TRAIN, jax.nn.relu, (2, 3)
"""

FLAX = """\
import flax.linen as nn
import jax.numpy as jnp


class Block(nn.Module):
    width: int = 8
    dtype: type = jnp.float32

    @nn.compact
    def __call__(self, x, is_training: bool):
        x = nn.Dense(self.width, dtype=self.dtype)(x)
        x = nn.BatchNorm(use_running_average=not is_training)(x)
        return nn.relu(nn.Dropout(0.5, deterministic=not is_training)(x))
"""

HAIKU = """\
import haiku as hk
import jax.numpy as jnp


class Block(hk.Module):
    def __init__(self, width: int, name=None):
        super().__init__(name)
        self.width = width

    def __call__(self, x):
        return jnp.tanh(hk.Linear(self.width)(x))
"""

EQUINOX = """\
import equinox as eqx
import jax
import jax.numpy as jnp


class Block(eqx.Module):
    weight: jax.Array
    activation: callable
    scale: float = 2.0

    def __init__(self, width: int, key: jax.Array):
        self.weight = jax.random.normal(key, (width, width))
        self.activation = jax.nn.gelu

    def __call__(self, x):
        return self.activation(x @ self.weight) * self.scale


CASE = (Block(4, jax.random.PRNGKey(0)), jnp.ones((2, 4)))
"""

SCRIPT = """\
import argparse

import jax
import jax.numpy as jnp


@jax.checkpoint
def loss(w):
    return jnp.sin(w).sum()


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2)
    return parser.parse_args(argv).steps * loss(jnp.arange(3.0))
"""

# What a migration may write, and a wrong form of it.
EDITS = {
    "plain": (
        "activation(state.x) * sizes[0]",
        "sizes[0] * activation(state.x)",
        "state.x * sizes[1]",
    ),
    "made": ("jnp.sin(x) * width", "width * jnp.sin(x)", "jnp.cos(x) * width"),
    "flax": ("age=not is_training", "age=not is_training, momentum=0.99", "age=is_training"),
    "haiku": ("jnp.tanh(", "1 * jnp.tanh(", "jnp.sin("),
    "script": ("jnp.sin(w).sum()", "jnp.sum(jnp.sin(w))", "jnp.cos(w).sum()"),
    "equinox": ("x @ self.weight", "jnp.dot(x, self.weight)", "x @ self.weight.T"),
}
SOURCES = {
    "plain": PLAIN,
    "made": PLAIN,
    "script": SCRIPT,
    "flax": FLAX,
    "haiku": HAIKU,
    "equinox": EQUINOX,
}
CASE_FILES = {
    "plain": CASES,
    "equinox": "from package import equinox\nCASES = {'package.equinox.Block.__call__': lambda:"
    " equinox.CASE}\n",
}


@pytest.mark.parametrize("kind", EDITS)
def test_fails_on_a_wrong_migration_alone(tmp_path: Path, kind: str) -> None:
    if kind in ("flax", "haiku", "equinox"):
        pytest.importorskip(kind)
    before = SOURCES[kind]
    old, right, wrong = EDITS[kind]
    assert before.count(old) == 1
    module = "plain" if kind == "made" else kind
    roots = {}
    for name, text in (("old", before), ("right", before.replace(old, right))):
        roots[name] = tmp_path / name
        files = {"pyproject.toml": "", "src/package/__init__.py": ""}
        write_files(roots[name], {**files, f"src/package/{module}.py": text})
    (tmp_path / "cases.py").write_text(CASE_FILES.get(kind, ""))
    given = ["--cases", str(tmp_path / "cases.py")] if kind in CASE_FILES else []
    ran = cli(
        roots["right"],
        *("verify", "--base", str(roots["old"]), "--output-format", "json"),
        *("--write-tests", "kept", *given),
    )
    assert ran.code == 0, ran.out + ran.err
    assert {v["verdict"] for v in json.loads(ran.out)["verdicts"]} == {"equal"}
    test = roots["right"] / "kept" / f"test_package_{module}_migration.py"
    assert str(tmp_path) not in test.read_text()
    status, output = pytest_alone(test, roots["right"])
    assert status == 0, output
    assert "remat" not in output
    (roots["right"] / f"src/package/{module}.py").write_text(before.replace(old, wrong))
    status, output = pytest_alone(test, roots["right"])
    assert status == 1, output


def pytest_alone(test: Path, root: Path) -> tuple[int, str]:
    """Run a written test where remat-migrate cannot be imported."""
    blocker = root / "sitecustomize.py"
    blocker.write_text("import sys\nsys.modules['remat_migrate'] = None\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", str(test)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root}:{root / 'src'}", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    shutil.rmtree(root / ".pytest_cache", ignore_errors=True)
    return run.returncode, run.stdout + run.stderr
