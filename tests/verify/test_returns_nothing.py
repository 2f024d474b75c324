"""Units that return nothing, such as tests and programs, are compared by the arrays they compute.

Their assertions are too weak to notice most wrong edits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import cli, write_files

MODULE = """
import flax.linen as nn
import jax
import jax.numpy as jnp


def layer(x, train):
    return jnp.sin(x) if train else x


class Net(nn.Module):
    @nn.compact
    def create(self):
        kernel = self.param("kernel", nn.initializers.ones, (3,))
        jax.checkpoint(layer, {option})(kernel, {train})
"""


def verdicts(folder: Path, old: str, new: str) -> dict[str, dict[str, Any]]:
    write_files(folder / "old", {"pyproject.toml": "", "layer_test.py": old})
    write_files(folder / "new", {"pyproject.toml": "", "layer_test.py": new})
    ran = cli(folder / "new", "verify", "--base", "../old", "--output-format", "json")
    return {v["unit"].rpartition(".")[2]: v for v in json.loads(ran.out)["verdicts"]}


CONFIGURED = """
import jax
import jax.numpy as jnp


def configure():
    {line}
    jax.config.update("jax_default_matmul_precision", "highest")


configure()


def layer(x, train):
    return jnp.sin(x) if train else x


def model(x):
    return jax.checkpoint(layer, {option})(x, True)
"""


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("jax.config.update('jax_enable_x64', True)", "equal"),
        ("pass", "differs"),
    ],
)
def test_settings_of_jax_are_compared(tmp_path: Path, line: str, outcome: str) -> None:
    x64 = "jax.config.update('jax_enable_x64', True); "
    flag = "jax.config.update('jax_new_checkpoint', False)"
    old = CONFIGURED.format(line=x64 + flag, option="concrete=True")
    found = verdicts(tmp_path, old, CONFIGURED.format(line=line, option="static_argnums=1"))
    assert {name: each["verdict"] for name, each in found.items()} == {
        "configure": outcome,
        "model": outcome,
    }
    if outcome == "differs":
        assert "jax_enable_x64" in found["model"]["detail"]


@pytest.mark.parametrize(("train", "outcome"), [("True", "equal"), ("False", "differs")])
def test_flax_method(tmp_path: Path, train: str, outcome: str) -> None:
    old = MODULE.format(option="concrete=True", train="True")
    new = MODULE.format(option="static_argnums=(1,)", train=train)
    assert verdicts(tmp_path, old, new)["create"]["verdict"] == outcome
