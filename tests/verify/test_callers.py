"""Unchanged callers of changed functions are compared, so a forgotten call is found."""

from __future__ import annotations

import json

from support import cli, write_files

BLOCK = """
import jax, jax.numpy as jnp
from functools import partial

@partial(jax.checkpoint, {option})
def block(x, w, train):
    y = jnp.tanh(x @ w)
    return y * 0.5 if train else y
"""
USE = """
import jax.numpy as jnp
import model

def loss(x, w, train=True):
    return jnp.sum(model.block(x, w, {train}))

def unrelated(x):
    return x
"""


def project(folder, option, train):
    files = {"pyproject.toml": "", "model.py": BLOCK.format(option=option)}
    write_files(folder, {**files, "use.py": USE.format(train=train)})


def test_forgotten_call_is_found(tmp_path):
    project(tmp_path / "old", "concrete=True", "train=train")
    project(tmp_path / "new", "static_argnums=(2,)", "train=train")
    ran = cli(tmp_path / "new", "verify", "--base", "../old", "--output-format", "json")
    verdicts = {v["unit"]: v["verdict"] for v in json.loads(ran.out)["verdicts"]}
    assert verdicts == {"model.block": "equal", "use.loss": "fails-after"}
    assert ran.code == 3


def test_callers_are_compared(tmp_path):
    project(tmp_path / "old", "concrete=True", "train")
    project(tmp_path / "new", "static_argnums=(2,)", "train")
    ran = cli(tmp_path / "new", "verify", "--base", "../old", "--output-format", "json")
    verdicts = {v["unit"]: v["verdict"] for v in json.loads(ran.out)["verdicts"]}
    assert verdicts == {"model.block": "equal", "use.loss": "equal"}
    assert ran.code == 0
