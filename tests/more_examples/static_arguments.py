"""Special cases of the rules about static arguments."""

from __future__ import annotations

from remat_migrate.rule import Example, Fails

WRONG: dict[str, list[Example]] = {
    "RMT203": [
        Example(
            """\
import flax.linen as nn


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = False):
        return 2 * x if train else x


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat(Block, static_argnums=(2,))()(x)
""",
            """\
import flax.linen as nn


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = False):
        return 2 * x if train else x


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat(Block, static_argnums=(2,))()(x, False)
""",
            use="""\
import jax
import jax.numpy as jnp

value = Net().apply({}, jnp.ones(3))
""",
            fails=Fails("ValueError: .*static_argnums"),
            holds="assert (value == 1).all()\n",
        ),
    ],
    "RMT206": [
        Example(
            """\
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.remat, static_argnames="is_training")
def block(x, is_training=False):
    return 2 * x if is_training else x


def loss(x):
    return jnp.sum(block(x, True))
""",
            """\
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.remat, static_argnums=(1,))
def block(x, is_training=False):
    return 2 * x if is_training else x


def loss(x):
    return jnp.sum(block(x, True))
""",
            use="value, gradient = jax.value_and_grad(loss)(jnp.ones(3))\n",
            fails=Fails("TypeError: .*static_argnames"),
            holds="assert value == 6 and (gradient == 2).all()\n",
        ),
        Example(
            """\
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.checkpoint, static_argnames="is_training")
def block(x, *, is_training=False):
    return 2 * x if is_training else x


def loss(x):
    return jnp.sum(block(x, is_training=True))
""",
            """\
import jax
import jax.numpy as jnp


def block(x, *, is_training=False):
    @jax.checkpoint
    def checkpointed_block(x):
        return 2 * x if is_training else x

    return checkpointed_block(x)


def loss(x):
    return jnp.sum(block(x, is_training=True))
""",
            use="value, gradient = jax.value_and_grad(loss)(jnp.ones(3))\n",
            fails=Fails("TypeError: .*static_argnames|TracerBoolConversionError"),
            holds="assert value == 6 and (gradient == 2).all()\n",
        ),
    ],
    "RMT207": [
        Example(
            """\
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.checkpoint, static_argnums={1, 2})
def block(x, order, double=False):
    return order * x if double else x


def loss(x):
    return jnp.sum(block(x, 2, True))
""",
            """\
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.checkpoint, static_argnums=(1, 2))
def block(x, order, double=False):
    return order * x if double else x


def loss(x):
    return jnp.sum(block(x, 2, True))
""",
            use="value, gradient = jax.value_and_grad(loss)(jnp.ones(3))\n",
            fails=Fails("TypeError: .*(static_argnums|not iterable)"),
            holds="assert value == 6 and (gradient == 2).all()\n",
        ),
        Example(
            """\
import flax.linen as nn


class Block(nn.Module):
    def __call__(self, x, train):
        return 2 * x if train else x


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat(Block, static_argnums=-1)()(x, True)
""",
            """\
import flax.linen as nn


class Block(nn.Module):
    def __call__(self, x, train):
        return 2 * x if train else x


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat(Block, static_argnums=(2,))()(x, True)
""",
            use="""\
import jax.numpy as jnp

value = Net().apply({}, jnp.ones(3))
""",
            fails=Fails("TracerBoolConversionError|ConcretizationTypeError"),
            holds="assert (value == 2).all()\n",
        ),
    ],
}

RIGHT: dict[str, list[Example]] = {
    "RMT203": [
        Example(
            """\
import flax.linen as nn


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = False):
        return 2 * x if train else x


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat(Block)()(x)
""",
            use="""\
import jax
import jax.numpy as jnp

value = Net().apply({}, jnp.ones(3))
""",
            holds="assert (value == 1).all()\n",
        ),
    ],
    "RMT207": [
        Example(
            """\
from flax.linen import partitioning


def wrap(block):
    return partitioning.remat(block, static_argnums=[1, 2])
""",
        ),
    ],
}
