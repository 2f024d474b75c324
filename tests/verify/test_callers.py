"""Unchanged callers of changed functions are compared, so a forgotten call is found."""

from __future__ import annotations

import json

import pytest
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


@pytest.mark.parametrize(
    ("call", "verdict", "code"),
    [("train=train", "fails-after", 3), ("train", "equal", 0)],
    ids=["forgotten", "right"],
)
def test_callers_are_compared(tmp_path, call, verdict, code):
    project(tmp_path / "old", "concrete=True", call)
    project(tmp_path / "new", "static_argnums=(2,)", call)
    ran = cli(tmp_path / "new", "verify", "--base", "../old", "--output-format", "json")
    verdicts = {v["unit"]: v["verdict"] for v in json.loads(ran.out)["verdicts"]}
    assert verdicts == {"model.block": "equal", "use.loss": verdict}
    assert ran.code == code


def test_tests_that_were_not_edited_are_no_callers(tmp_path):
    project(tmp_path / "old", "concrete=True", "train")
    project(tmp_path / "new", "static_argnums=(2,)", "train")
    test = "import model\ndef test_block():\n    model.block(1.0, 1.0, train=True)\n"
    for root in ("old", "new"):
        write_files(tmp_path / root, {"test_use.py": test})
    ran = cli(tmp_path / "new", "verify", "--base", "../old", "--output-format", "json")
    verdicts = {v["unit"]: v["verdict"] for v in json.loads(ran.out)["verdicts"]}
    assert verdicts == {"model.block": "equal", "use.loss": "equal"}
    assert ran.code == 0


STORED = """
import jax, jax.numpy as jnp
from functools import partial

def error(x, y, power=2, mean=True):
    e = jnp.abs(x - y) ** power
    return jnp.mean(e) if mean else e

class Trainer:
    def __init__(self, scale: float = 2.0):
        self.scale = scale
        self.error = {stored}

    @staticmethod
    def _error(x, y, **options):
        return jax.checkpoint(partial(error, **options))(x, y)

    def train(self, x: jax.Array, y: jax.Array):
        return self.scale * self.error(x, y, power=3)

    def evaluate(self, x: jax.Array, y: jax.Array):
        return self.error(x, y, mean=False)

def fit(x: jax.Array, y: jax.Array):
    trainer = Trainer()
    return trainer.train(x, y), trainer.evaluate(x, y)
"""


@pytest.mark.parametrize(
    ("stored", "code"),
    [pytest.param("self._error", 0, marks=pytest.mark.slow), ("partial(error, y=0)", 3)],
)
def test_calls_of_a_stored_function_decide_whether_it_may_take_others(tmp_path, stored, code):
    old = STORED.format(stored="jax.checkpoint(error, concrete=True)")
    write_files(tmp_path / "old", {"pyproject.toml": "", "model.py": old})
    new = STORED.format(stored=stored)
    write_files(tmp_path / "new", {"pyproject.toml": "", "model.py": new})
    ran = cli(tmp_path / "new", "verify", "--base", "../old", "--output-format", "json")
    verdicts = {v["unit"]: v["verdict"] for v in json.loads(ran.out)["verdicts"]}
    assert ran.code == code, verdicts
    assert (verdicts["model.Trainer.__init__"] == "equal") == (code == 0)


SETUP = """
import flax.linen as nn, jax.numpy as jnp

class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, scale, train: bool):
        y = nn.Dense(self.width)(x)
        return jnp.tanh(y) * scale if train else y * scale

class Net(nn.Module):
    width: int = 8

    def setup(self):
        block = nn.remat(Block, static_argnums=({number},))
        self.block = block(self.width{extra})

    def encode(self, x, train: bool = True):
        return x + self.block(x, 2.0, train)

    def __call__(self, x, train: bool = True):
        return self.encode(x, train) * 2.0
"""


def test_methods_that_use_what_setup_makes_are_run(tmp_path):
    for side, number, extra in (("old", 3, ""), ("right", "1, 3", ""), ("wrong", 3, " * 2")):
        text = SETUP.format(number=number, extra=extra)
        write_files(tmp_path / side, {"pyproject.toml": "", "net.py": text})
    found = {}
    for side in ("right", "wrong"):
        ran = cli(tmp_path / side, "verify", "--base", "../old", "--output-format", "json")
        verdicts = json.loads(ran.out)["verdicts"]
        found[side] = {v["unit"].rpartition(".")[2]: v["verdict"] for v in verdicts}
    assert found["right"]["setup"] == "equal"
    assert found["wrong"]["setup"] == "fails-after"


PARTIAL = """
import jax, jax.numpy as jnp
from functools import partial
from jax.tree_util import Partial

@partial(jax.checkpoint, {option})
def loss(network, x, train):
    y = network(x, rate=0.5 if train else 0.0)
    return jnp.mean(jnp.tanh(y) * y)

def total(network, xs, train):
    return sum(loss(network, x, {train}) for x in xs)

def network(scale, x, rate):
    return x * scale * (1.0 - rate)

def fit(x: jax.Array, train: bool):
    return total(Partial(network, jnp.float32(2.0)), [x, x + 1.0], train)
"""


@pytest.mark.parametrize(
    ("train", "code"), [pytest.param("train", 0, marks=pytest.mark.slow), ("not train", 3)]
)
def test_callers_decide_where_jax_takes_no_stand_in_for_a_function(tmp_path, train, code):
    options = {"old": ("concrete=True", "train"), "new": ("static_argnums=(2,)", train)}
    for folder, (option, passed) in options.items():
        source = PARTIAL.format(option=option, train=passed)
        write_files(tmp_path / folder, {"pyproject.toml": "", "model.py": source})
    ran = cli(tmp_path / "new", "verify", "--base", "../old", "--output-format", "json")
    verdicts = {v["unit"]: v["verdict"] for v in json.loads(ran.out)["verdicts"]}
    assert ran.code == code, verdicts
    assert verdicts["model.loss"] == "not-exercised"
    assert verdicts.get("model.fit") == ("differs" if code else None)


METHODS = """
import jax, jax.numpy as jnp

class Model:
    def __init__(self, scale: float = 2.0):
        self.scale = scale
{stored}
    def encode(self, x: jax.Array, mean: bool = False):
        y = jnp.tanh(self.scale * x)
        return y.mean(axis=-1) if mean else y
{method}
    def total(self, x: jax.Array):
        return self._encode(x).sum()
"""
STORED_FUNCTION = "        self._encode = jax.checkpoint(self.encode, concrete=True)\n"
METHOD = """
    def _encode(self, x, mean=False):
        return jax.checkpoint(lambda x: self.encode(x{mean}))(x)
"""


@pytest.mark.parametrize(("mean", "outcome"), [(", mean", "equal"), ("", "differs")])
def test_a_method_takes_the_place_of_a_stored_function(tmp_path, mean, outcome):
    old = METHODS.format(stored=STORED_FUNCTION, method="")
    new = METHODS.format(stored="", method=METHOD.format(mean=mean))
    write_files(tmp_path / "old", {"pyproject.toml": "", "model.py": old})
    write_files(tmp_path / "new", {"pyproject.toml": "", "model.py": new})
    ran = cli(tmp_path / "new", "verify", "--base", "../old", "--output-format", "json")
    verdicts = {v["unit"]: v["verdict"] for v in json.loads(ran.out)["verdicts"]}
    assert verdicts["model.Model.__init__"] == outcome
    assert ran.code == (0 if outcome == "equal" else 3), verdicts
