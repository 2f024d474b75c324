"""Misplaced checkpoints of models: through training states, transforms, and objects passed on."""

from __future__ import annotations

import pytest
from support import places

HEAD = """\
import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
from flax import nnx
from functools import partial


"""
LINEN = (
    HEAD
    + """\
class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(8)(nn.tanh(nn.Dense(8)(x)))


class Stack(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(6):
            x = {block}()(x)
        return x


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = x + self.param("pos", nn.initializers.zeros, (1, 8))
        return nn.Dense(1)({stack}(name="stack")(x))


class Alone(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat(Block)(name="inner")(x)


"""
)
LOSS = "def loss(params, x):\n    return model.apply(params, x).sum()\n\n\nstep = jax.grad(loss)\n"
HAIKU = (
    HEAD
    + """\
def stack(x):
    for _ in range(6):
        x = x + hk.Linear(8)(jnp.tanh(hk.Linear(8)(x)))
    return x


def forward(x):
    return hk.Linear(1)(hk.remat(stack)(x))


"""
)
NNX = (
    HEAD
    + """\
class Net(nnx.Module):
    def __init__(self, rngs):
        self.first, self.last = nnx.Linear(8, 8, rngs=rngs), nnx.Linear(8, 8, rngs=rngs)

    @nnx.remat
    def __call__(self, x):
        return self.last(jnp.tanh(self.first(x)))


def train(x):
    def loss(model):
        return model(x).sum()

    model = Net(nnx.Rngs(0))
    return nnx.value_and_grad(loss)(model)
"""
)
EQUINOX = (
    HEAD
    + """\
class Stack(eqx.Module):
    layers: list[eqx.nn.MLP]

    def __call__(self, x):
        for layer in self.layers:
            x = {layer}(x)
        return x


class Net(eqx.Module):
    stack: Stack
    head: eqx.nn.Linear

    def __call__(self, x):
        return self.head(eqx.filter_checkpoint(self.stack)(x))


def train(model: Net, x):
    params, static = eqx.partition(model, eqx.is_inexact_array)

    def loss(params):
        return jax.vmap(eqx.combine(params, static))(x).sum()

    return eqx.filter_value_and_grad(loss)(params)
"""
)
WHOLE = LINEN.format(block="Block", stack="nn.remat(Stack)")
# Each with what is found; passing the model to another file, the first file is checked.
FOUND = {
    "module level": (WHOLE + "model = Model()\n\n\n" + LOSS, "28:28 RMT301"),
    "parameter": (
        {
            "example.py": WHOLE + "import steps\nstep = steps.make(Model())\n",
            "steps.py": "import jax\n\ndef make(model):\n"
            "    return jax.grad(lambda p, x: model.apply(p, x).sum())\n",
        },
        "28:28 RMT301",
    ),
    "attribute": (
        WHOLE + "class Trainer:\n    def __init__(self, model):\n        self.model = model\n\n"
        "    def loss(self, params, x):\n        return self.model.apply(params, x).sum()\n\n"
        "    def step(self, params, x):\n        return jax.grad(self.loss)(params, x)\n\n\n"
        "trainer = Trainer(Model())\n",
        "28:28 RMT301",
    ),
    "double": (
        LINEN.format(block="nn.remat(Block)", stack="nn.remat(Stack)") + "model = Model()\n" + LOSS,
        "28:28 RMT305",
    ),
    "double class": (
        LINEN.format(block="Block", stack="Stack") + "Twice = nn.remat(Alone)\n",
        "37:9 RMT305",
    ),
    "haiku": (
        HAIKU + "model = hk.without_apply_rng(hk.transform(forward))\n\n\n" + LOSS,
        "17:25 RMT301",
    ),
    "haiku pair": (
        HAIKU + "init, apply = hk.transform(forward)\n\n\n" + LOSS.replace("model.", ""),
        "17:25 RMT301",
    ),
    "nnx": (NNX, "14:6 RMT301"),
    "equinox": (EQUINOX.format(layer="layer"), "24:26 RMT301"),
    "equinox double": (EQUINOX.format(layer="eqx.filter_checkpoint(layer)"), "24:26 RMT305"),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    files, place = FOUND[name]
    assert [found for found in places(files, select="RMT3") if "RMT304" not in found] == [
        f"example.py:{place}"
    ]


LEFT_ALONE = {
    "each block": LINEN.format(block="nn.remat(Block)", stack="Stack")
    + "model = Model()\n\n\n"
    + LOSS,
    "not differentiated": WHOLE + "model = Model()\n\n\n" + LOSS.replace("jax.grad", "jax.jit"),
    "a stack follows": HAIKU.replace("hk.Linear(1)(", "stack(")
    + "model = hk.without_apply_rng(hk.transform(forward))\n\n\n"
    + LOSS,
    "another method": WHOLE + "model = Model()\n\n\n" + LOSS.replace("x)", 'x, method="other")'),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name: str) -> None:
    assert places(LEFT_ALONE[name], select="RMT3") == []
