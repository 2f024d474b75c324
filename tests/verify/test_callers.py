"""Unchanged callers of changed functions are compared, so a forgotten call is found.

All programs are modules of one project, which is verified once: some are right, some wrong.
"""

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
import {model}

def loss(x, w, train=True):
    return jnp.sum({model}.block(x, w, {train}))

def unrelated(x):
    return x
"""
TEST = """
import model

def test_block():
    model.block(1.0, 1.0, train=True)
"""
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
REMOVED, STATIC = "concrete=True", "static_argnums=(2,)"


def modules(is_old: bool) -> dict[str, str]:
    option = REMOVED if is_old else STATIC
    texts = {
        "model": BLOCK.format(option=option),
        "use": USE.format(model="model", train="train"),
        "use_test": TEST,
        "model_of_wrong": BLOCK.format(option=option),
        "use_wrong": USE.format(model="model_of_wrong", train="train=train"),
    }
    for name, stored, number, train, mean in (
        ("right", "self._error", "1, 3", "train", ", mean"),
        ("wrong", "partial(error, y=0)", "3", "not train", ""),
    ):
        if is_old:
            stored, number, train = f"jax.checkpoint(error, {REMOVED})", "3", "train"
        extra = " * 2" if name == "wrong" and not is_old else ""
        texts |= {
            f"stored_{name}": STORED.format(stored=stored),
            f"setup_{name}": SETUP.format(number=number, extra=extra),
            f"partial_{name}": PARTIAL.format(option=option, train=train),
            f"methods_{name}": METHODS.format(stored=STORED_FUNCTION, method="")
            if is_old
            else METHODS.format(stored="", method=METHOD.format(mean=mean)),
        }
    return {"pyproject.toml": "", **{f"{name}.py": text for name, text in texts.items()}}


def test_callers(tmp_path):
    write_files(tmp_path / "old", modules(is_old=True))
    write_files(tmp_path / "new", modules(is_old=False))
    ran = cli(tmp_path / "new", "verify", "--base", "../old", "--output-format", "json")
    assert ran.code == 3, ran.err
    verdicts = {v["unit"]: v["verdict"] for v in json.loads(ran.out)["verdicts"]}

    # No verdict on a right module fails the run, and one on each wrong module does.
    failing = {u.partition(".")[0] for u, v in verdicts.items() if v in ("differs", "fails-after")}
    wrong = ("use", "stored", "setup", "partial", "methods")
    assert failing == {f"{name}_wrong" for name in wrong}

    def those_of(*names):
        return {u: v for u, v in verdicts.items() if u.partition(".")[0] in names}

    # No unit of the test, which was not edited.
    assert those_of("model", "use", "use_test") == {"model.block": "equal", "use.loss": "equal"}
    wrong = {"model_of_wrong.block": "equal", "use_wrong.loss": "fails-after"}
    assert those_of("model_of_wrong", "use_wrong") == wrong
    # The calls of a stored function decide whether it may take others.
    assert verdicts["stored_right.Trainer.__init__"] == "equal"
    assert verdicts["stored_wrong.Trainer.__init__"] != "equal"
    # Methods that use what `setup` makes are run.
    assert verdicts["setup_right.Net.setup"] == "equal"
    assert verdicts["setup_wrong.Net.setup"] == "fails-after"
    # Callers decide where JAX takes no stand-in for a function.
    assert verdicts["partial_right.loss"] == verdicts["partial_wrong.loss"] == "not-exercised"
    assert verdicts["partial_wrong.fit"] == "differs"
    assert "partial_right.fit" not in verdicts
    # A method takes the place of a stored function.
    assert verdicts["methods_right.Model.__init__"] == "equal"
    assert verdicts["methods_wrong.Model.__init__"] == "differs"
