"""Units that return nothing, such as tests and programs, are compared by the arrays they compute.

Their assertions are too weak to notice most wrong edits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import cli, write_files

TESTS = """
import unittest

import jax
import jax.numpy as jnp
from absl.testing import parameterized


def layer(x, scale, train):
    return jnp.sin(x) * scale if train else x


class LayerTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.x = jnp.arange(3.0)

    def test_layer(self):
        y = jax.checkpoint(layer, {option})(self.x, {scale}, True)
        self.assertEqual(y.shape, (3,))

    @parameterized.parameters(2.0, 3.0)
    def test_gradient(self, scale):
        def loss(x):
            return jax.checkpoint(layer, {option})(x, scale, True).sum()

        for _ in range(2):
            self.assertLen(jax.grad({loss})(self.x), 3)

    def test_nothing(self):
        jax.checkpoint(layer, {option})
"""
MAIN = """
import jax
import jax.numpy as jnp


def layer(x, train):
    return jnp.sin(x) if train else x


def main():
    raise SystemExit("the program has run")


if __name__ == "__main__":
    policy = {policy}
    y = jax.checkpoint({function}, {option})(jnp.arange(3.0), True)
    assert y.shape == (3,)
    main()
"""
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
OLD_TESTS = TESTS.format(option="concrete=True", scale="2.0", loss="loss")
OLD_MAIN = MAIN.format(option="concrete=True", function="layer", policy="True")


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


def test_right_tests_are_equal(tmp_path: Path) -> None:
    new = TESTS.format(option="static_argnums=(2,)", scale="2.0", loss="loss")
    found = verdicts(tmp_path, OLD_TESTS, new)
    assert found["test_layer"]["verdict"] == found["test_gradient"]["verdict"] == "equal"
    assert "test 0, test 1" in found["test_gradient"]["detail"]
    assert found["test_nothing"]["verdict"] == "not-exercised"


@pytest.mark.parametrize(
    ("option", "scale", "loss", "outcome"),
    [
        ("static_argnums=(2,)", "3.0", "lambda x: -loss(x)", ["differs", "differs"]),
        ("static_argnums=(1,)", "2.0", "loss", ["fails-after", "fails-after"]),
    ],
)
def test_wrong_tests(
    tmp_path: Path, option: str, scale: str, loss: str, outcome: list[str]
) -> None:
    found = verdicts(tmp_path, OLD_TESTS, TESTS.format(option=option, scale=scale, loss=loss))
    assert [found[name]["verdict"] for name in ("test_layer", "test_gradient")] == outcome


@pytest.mark.parametrize(
    ("option", "function", "outcome"),
    [
        ("static_argnums=(1,)", "layer", "equal"),
        ("static_argnums=(1,)", "lambda x, train: layer(x, not train)", "differs"),
    ],
)
def test_program_under_the_main_guard(
    tmp_path: Path, option: str, function: str, outcome: str
) -> None:
    policy = "jax.checkpoint_policies.nothing_saveable"
    new = MAIN.format(option=option, function=function, policy=policy)
    found = verdicts(tmp_path, OLD_MAIN, new)
    assert [each["verdict"] for each in found.values()] == [outcome]


@pytest.mark.parametrize(("train", "outcome"), [("True", "equal"), ("False", "differs")])
def test_flax_method(tmp_path: Path, train: str, outcome: str) -> None:
    old = MODULE.format(option="concrete=True", train="True")
    new = MODULE.format(option="static_argnums=(1,)", train=train)
    assert verdicts(tmp_path, old, new)["create"]["verdict"] == outcome
