"""What an edited checkpoint returns is compared even where its callers do not use it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import cli, write_files

UNITS = """
import unittest

import jax
import jax.numpy as jnp


def layer(x, train):
    return jnp.sin(x) * 2 if train else jnp.cos(x)


def dropped(x):
    return x * STEP(x).shape[0]


def nothing(x):
    STEP(x)


def in_a_scan(x):
    def body(carry, _):
        STEP(carry)
        return carry + 1, None

    return jax.lax.scan(body, x, None, length=3)[0]


def under_vmap(x):
    return jax.vmap(lambda row: (STEP(row), row + 1)[1])(jnp.stack([x, x]))


def under_grad(x):
    return jax.grad(lambda x: (STEP(x), (x * x).sum())[1])(x)


def under_jit(x):
    return jax.jit(lambda x: (STEP(x), x + 1)[1])(x)


class StepTest(unittest.TestCase):
    def shape(self, x):
        return STEP(x).shape

    def gradient(self, x):
        return float(jax.grad(lambda x: (STEP(x), x.sum())[1])(x)[0])

    def test_shape(self):
        self.assertEqual(self.shape(jnp.arange(3.0)), (3,))

    def test_gradient(self):
        self.assertEqual(self.gradient(jnp.arange(3.0)), 1.0)
"""
OLD = "jax.checkpoint(layer, concrete=True)(X, True)"
NAMES = ["dropped", "nothing", "in_a_scan", "under_vmap", "under_grad", "under_jit"]


def units(step: str) -> str:
    return re.sub(r"STEP\((\w+)\)", lambda call: step.replace("X", call[1]), UNITS)


def verdicts(folder: Path, new: str) -> dict[str, dict[str, Any]]:
    write_files(folder / "old", {"pyproject.toml": "", "m_test.py": units(OLD)})
    write_files(folder / "new", {"pyproject.toml": "", "m_test.py": units(new)})
    ran = cli(folder / "new", "verify", "--base", "../old", "--output-format", "json")
    found = {v["unit"].partition(".")[2]: v for v in json.loads(ran.out)["verdicts"]}
    print({name: (v["verdict"], v["evidence"], v["detail"]) for name, v in found.items()})
    return found


@pytest.mark.parametrize(
    "step",
    [
        "jax.checkpoint(layer, static_argnums=(1,))(X, True)",
        "jax.checkpoint(lambda x: layer(x, True))(X)",
        "layer(X, True)",
    ],
)
def test_right(tmp_path: Path, step: str) -> None:
    found = verdicts(tmp_path, step)
    assert {v["verdict"] for v in found.values()} == {"equal"}


@pytest.mark.parametrize(
    "step",
    [
        "jax.checkpoint(layer, static_argnums=(1,))(X, False)",
        "jax.checkpoint(layer, static_argnums=(1,))(2 * X, True)",
        "jax.checkpoint(lambda x: layer(x, False))(X)",
        "jax.checkpoint(lambda x: x)(X)",
    ],
)
def test_wrong(tmp_path: Path, step: str) -> None:
    found = verdicts(tmp_path, step)
    assert "equal" not in {v["verdict"] for v in found.values()}
