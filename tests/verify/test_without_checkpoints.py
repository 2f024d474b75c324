"""`verify --without-checkpoints` finds where a checkpoint is not transparent."""

from __future__ import annotations

import json
from pathlib import Path

from support import cli, write_files

CODE = """\
import functools

import jax
import jax.numpy as jnp

CALLS = []


@jax.checkpoint
def block(w, x):
    return jnp.tanh(x @ w)


@jax.checkpoint
def counted(x):
    CALLS.append(1)
    return jnp.sin(x)


@functools.partial(jax.checkpoint, static_argnums=(0,))
def doubled(x, training: bool = False):
    return x * 2.0 if training else x


def plain(x):
    return x + 1.0


def loss(params, x):
    for w in params:
        x = jax.checkpoint(block)(w, x)
    return plain(x).sum()
"""


def test_every_function_with_checkpoints(tmp_path: Path) -> None:
    write_files(tmp_path, {"pyproject.toml": "", "model.py": CODE})
    ran = cli(tmp_path, "verify", "--without-checkpoints", "--output-format", "json")
    verdicts = {one["unit"]: one for one in json.loads(ran.out)["verdicts"]}
    assert {unit: one["verdict"] for unit, one in verdicts.items()} == {
        "model.block": "equal",
        "model.counted": "differs",
        "model.doubled": "fails-after",
        "model.loss": "equal",
    }
    assert "CALLS" in verdicts["model.counted"]["detail"]
    assert ran.code == 3
    assert (tmp_path / "model.py").read_text() == CODE


def test_not_with_a_base(tmp_path: Path) -> None:
    write_files(tmp_path, {"pyproject.toml": ""})
    ran = cli(tmp_path, "verify", "--without-checkpoints", "--base", "HEAD")
    assert ran.code == 2
    assert "--without-checkpoints cannot be combined with --base" in ran.err
