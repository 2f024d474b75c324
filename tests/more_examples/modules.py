"""Special cases of the rules about modules of neural network libraries."""

from __future__ import annotations

from remat_migrate.rule import Example, Fails

WRONG: dict[str, list[Example]] = {
    "RMT501": [
        Example(
            """\
import flax.linen as nn


class Net(nn.Module):
    def setup(self):
        self.block = nn.remat(nn.Dense(4), prevent_cse=False)

    def __call__(self, x):
        return self.block(x)
""",
            use="""\
import jax

value, variables = Net().init_with_output(jax.random.PRNGKey(0), jax.numpy.ones(3))
""",
            fails=Fails("TransformTargetError"),
        ),
    ],
    "RMT502": [
        Example(
            """\
from functools import partial

import flax.linen as nn


class Net(nn.Module):
    def setup(self):
        self.layer = nn.Dense(3)

    @partial(nn.remat, static_argnums=1)
    def layers(self, x, n: int):
        for _ in range(n):
            x = self.layer(x)
        return x

    def __call__(self, x):
        return self.layers(x, 2)
""",
            """\
from functools import partial

import flax.linen as nn


class Net(nn.Module):
    def setup(self):
        self.layer = nn.Dense(3)

    @partial(nn.remat, static_argnums=(2,))
    def layers(self, x, n: int):
        for _ in range(n):
            x = self.layer(x)
        return x

    def __call__(self, x):
        return self.layers(x, 2)
""",
            use="""\
import jax

value, variables = Net().init_with_output(jax.random.PRNGKey(0), jax.numpy.ones(3))
""",
            fails=Fails("TracerIntegerConversionError|TypeError"),
            holds="assert value.shape == (3,)\n",
        ),
        Example(
            """\
import flax.linen as nn


def layers(mdl, x, train: bool):
    y = mdl(x)
    return y if train else 2 * y


class Net(nn.Module):
    def setup(self):
        self.block = nn.Dense(3)

    def __call__(self, x):
        return nn.remat(layers, static_argnums=(1,))(self.block, x, False)
""",
            """\
import flax.linen as nn


def layers(mdl, x, train: bool):
    y = mdl(x)
    return y if train else 2 * y


class Net(nn.Module):
    def setup(self):
        self.block = nn.Dense(3)

    def __call__(self, x):
        return nn.remat(layers, static_argnums=(2,))(self.block, x, False)
""",
            use="""\
import jax

value, variables = Net().init_with_output(jax.random.PRNGKey(0), jax.numpy.ones(3))
""",
            fails=Fails("TracerBoolConversionError|ConcretizationTypeError"),
            holds="assert value.shape == (3,)\n",
        ),
    ],
    "RMT503": [
        Example(
            """\
import haiku as hk


class Block(hk.Module):
    @hk.remat
    def __call__(self, x):
        return hk.Linear(3)(x)
""",
            use="Block\n",
            fails=Fails("ValueError: .*outside of hk.transform"),
        ),
        Example(
            """\
from flax import nnx
import jax


class Net(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(3, 3, rngs=rngs)

    def inner(self, x):
        return self.layer(x)

    def __call__(self, x):
        return nnx.remat(self.inner)(x)
""",
            use="value = Net(nnx.Rngs(0))(jax.numpy.ones(3))\n",
            fails=Fails("ValueError: .*bound methods", since="0.8.1"),
        ),
    ],
    "RMT504": [
        Example(
            """\
import flax.linen as nn


class Block(nn.Module):
    @nn.remat(prevent_cse=False)
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)
""",
            """\
from functools import partial

import flax.linen as nn


class Block(nn.Module):
    @partial(nn.remat, prevent_cse=False)
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)
""",
            use="""\
import jax

value, variables = Block().init_with_output(jax.random.PRNGKey(0), jax.numpy.ones(3))
""",
            fails=Fails("TypeError: .*missing 1 required positional argument"),
            holds="assert list(variables['params']) == ['Dense_0']\n",
        ),
    ],
}

RIGHT: dict[str, list[Example]] = {
    "RMT501": [
        Example(
            """\
import flax.linen as nn


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return nn.Dense(3)(x), None


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        blocks = nn.scan(
            nn.remat(Block, prevent_cse=False),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=2,
        )
        x, _ = blocks(name="blocks")(x, None)
        return nn.remat_scan(nn.Dense, lengths=(2,))(3, name="stack")(x)
""",
            use="""\
import jax

value, variables = Net().init_with_output(jax.random.PRNGKey(0), jax.numpy.ones(3))
""",
            holds="assert sorted(variables['params']) == ['blocks', 'stack']\n",
        ),
        Example(
            """\
import flax.linen as nn


class Net(nn.Module):
    @nn.remat
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)
""",
            use="""\
import jax

value, variables = Net().init_with_output(jax.random.PRNGKey(0), jax.numpy.ones(3))
""",
            holds="assert sorted(variables['params']) == ['Dense_0']\n",
        ),
        Example(
            """\
import equinox as eqx
import jax

layer = eqx.nn.Linear(3, 3, key=jax.random.PRNGKey(0))
block = eqx.filter_checkpoint(layer)
""",
            use="value = block(jax.numpy.ones(3))\n",
            holds="assert value.shape == (3,)\n",
        ),
        Example(
            """\
import haiku as hk


def forward(x):
    return hk.remat(hk.Linear(3))(x)


model = hk.transform(forward)
""",
            use="""\
import jax

params = model.init(jax.random.PRNGKey(0), jax.numpy.ones(3))
""",
            holds="assert list(params) == ['linear']\n",
        ),
    ],
    "RMT502": [
        Example(
            """\
import haiku as hk


class Block(hk.Module):
    def __call__(self, x, train):
        return hk.Linear(3)(x) if train else x


def forward(x):
    return hk.remat(Block(), static_argnums=(1,))(x, True)


model = hk.transform(forward)
""",
            use="""\
import jax

key, x = jax.random.PRNGKey(0), jax.numpy.ones(3)
value = model.apply(model.init(key, x), key, x)
""",
            holds="assert value.shape == (3,)\n",
        ),
        Example(
            """\
import equinox as eqx
import jax


@eqx.filter_checkpoint
def block(layer, x, train):
    return layer(x) if train else x
""",
            use="""\
layer = eqx.nn.Linear(3, 3, key=jax.random.PRNGKey(0))
value = block(layer, jax.numpy.ones(3), train=True)
""",
            holds="assert value.shape == (3,)\n",
        ),
    ],
    "RMT503": [
        Example(
            """\
import haiku as hk
import jax

model = hk.transform(lambda x: hk.Linear(3)(x))
apply = jax.checkpoint(model.apply)
""",
            use="""\
key, x = jax.random.PRNGKey(0), jax.numpy.ones(3)
value = apply(model.init(key, x), key, x)
""",
            holds="assert value.shape == (3,)\n",
        ),
        Example(
            """\
from flax import nnx
import jax


class Net(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(3, 3, rngs=rngs)

    def inner(self, x):
        return self.layer(x)

    def __call__(self, x):
        return nnx.remat(Net.inner)(self, x)
""",
            use="value = Net(nnx.Rngs(0))(jax.numpy.ones(3))\n",
            holds="assert value.shape == (3,)\n",
        ),
        Example(
            """\
from flax import nnx
import jax


class Net(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(3, 3, rngs=rngs)

    def inner(self, x):
        return self.layer(x)

    def __call__(self, x):
        return nnx.remat(self.layer)(x)
""",
            use="value = Net(nnx.Rngs(0))(jax.numpy.ones(3))\n",
            holds="assert value.shape == (3,)\n",
        ),
        Example(
            """\
import equinox as eqx
import jax

layer = eqx.nn.Linear(3, 3, key=jax.random.PRNGKey(0))
block = jax.checkpoint(lambda layer, x: layer(x))
""",
            use="value = block(layer, jax.numpy.ones(3))\n",
            holds="assert value.shape == (3,)\n",
        ),
    ],
    "RMT504": [
        Example(
            """\
import equinox as eqx
import jax


@eqx.filter_checkpoint(prevent_cse=False)
def block(x):
    return x * jax.numpy.sin(x)
""",
            use="gradient = jax.grad(block)(0.0)\n",
            holds="assert gradient == 0.0\n",
        ),
    ],
}
