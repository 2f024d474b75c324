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
WHOLE = LINEN.format(block="Block", stack="nn.remat(Stack)")
# Each with what is found; passing the model to another file, the first file is checked.
FOUND = {
    "double class": (
        LINEN.format(block="Block", stack="Stack") + "Twice = nn.remat(Alone)\n",
        "37:9 RMT305",
    ),
    "haiku pair": (
        HAIKU + "init, apply = hk.transform(forward)\n\n\n" + LOSS.replace("model.", ""),
        "17:25 RMT301",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    files, place = FOUND[name]
    assert [found for found in places(files, select="RMT3") if "RMT304" not in found] == [
        f"example.py:{place}"
    ]


LEFT_ALONE = {
    "another method": WHOLE + "model = Model()\n\n\n" + LOSS.replace("x)", 'x, method="other")'),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name: str) -> None:
    assert places(LEFT_ALONE[name], select="RMT3") == []
