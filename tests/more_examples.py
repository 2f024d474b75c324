"""The examples of the rules: those on their pages, and special cases that only tests read."""

from __future__ import annotations

from remat_migrate.rule import Example, Fails, Rule

_NNX_NET = """\
from flax import nnx
import jax


class Net(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(3, 3, rngs=rngs)

    def inner(self, x):
        return self.layer(x)

    def __call__(self, x):
        return nnx.remat(self.%s)(x)
"""

_NNX_LIST = """\
from functools import partial

import jax
from flax import nnx


class Block(nnx.Module):
    %s
    def __call__(self, x, train: bool):
        return 2 * x if train else x


class Net(nnx.Module):
    def __init__(self):
        self.blocks = nnx.List([Block() for _ in range(2)])

    def __call__(self, x, train=False):
        for block in self.blocks:
            x = block(x, %strain)
        return x
"""
_EQUINOX = """import equinox as eqx
import jax


class Block(eqx.Module):
    weight: jax.Array

    def __call__(self, x):
        return self.weight * x


def run(block: Block, x):
    return %s(block)(x)
"""

WRONG: dict[str, list[Example]] = {
    "RMT201": [
        Example(
            _NNX_LIST % ("@nnx.remat", "train="),
            _NNX_LIST % ("@partial(nnx.remat, static_argnums=(2,))", ""),
            use="value = Net()(jax.numpy.ones(3), train=True)\n",
            fails=Fails("TracerBoolConversionError"),
            holds="assert (value == 4).all()\n",
        ),
    ],
    "RMT503": [
        Example(
            _EQUINOX % "jax.checkpoint",
            _EQUINOX % "eqx.filter_checkpoint",
            use="value = run(Block(jax.numpy.ones(3)), 2.0)\n",
            fails=Fails("TypeError: unhashable"),
            holds="assert (value == 2).all()\n",
        ),
    ],
    "RMT402": [
        Example(
            """\
import jax

POLICY = "nothing_savable"
f = jax.checkpoint(
    jax.numpy.sin, policy=getattr(jax.checkpoint_policies, POLICY, None)
)
""",
            """\
import jax

POLICY = "nothing_saveable"
f = jax.checkpoint(
    jax.numpy.sin, policy=getattr(jax.checkpoint_policies, POLICY, None)
)
""",
            use="policy = getattr(jax.checkpoint_policies, POLICY, None)\n",
            shows="assert policy is None\n",
            holds="assert policy is jax.checkpoint_policies.nothing_saveable\n",
        ),
    ],
    "RMT404": [
        Example(
            """\
import jax

policy = jax.checkpoint_policies.dots_saveable()
""",
            """\
import jax

policy = jax.checkpoint_policies.dots_saveable
""",
            use="f = jax.checkpoint(jax.numpy.sin, policy=policy)\n",
            fails=Fails("TypeError: .*missing 1 required positional argument: 'prim'"),
            holds="assert jax.grad(f)(0.0) == 1.0\n",
        ),
        Example(
            """\
import jax
from jax.ad_checkpoint import checkpoint_name

NAMES = ("h", "y")
f = jax.checkpoint(
    lambda x: jax.numpy.sin(checkpoint_name(jax.numpy.sin(x), "h")),
    policy=jax.checkpoint_policies.save_only_these_names(NAMES),
)
""",
            """\
import jax
from jax.ad_checkpoint import checkpoint_name

NAMES = ("h", "y")
f = jax.checkpoint(
    lambda x: jax.numpy.sin(checkpoint_name(jax.numpy.sin(x), "h")),
    policy=jax.checkpoint_policies.save_only_these_names(*NAMES),
)
""",
            use="""\
from jax._src.ad_checkpoint import saved_residuals

kept = [text for _, text in saved_residuals(f, 1.0) if "argument" not in text]
""",
            shows="assert kept == []\n",
            holds="assert len(kept) == 1\n",
        ),
        Example(
            """\
import jax

f = jax.checkpoint(jax.numpy.sin, policy=lambda *_, **__: None)
""",
            use="slope = jax.grad(f)(0.0)\n",
            fails=Fails("TypeError: .*a remat policy|AssertionError", since="0.4.16"),
        ),
        Example(
            """\
import jax


def sines(prim, *operands):
    return prim.name == "sin"


f = jax.checkpoint(jax.numpy.dot, policy=sines)
""",
            use="""\
x = jax.numpy.ones(2)
slope = jax.grad(f)(x, x)
""",
            fails=Fails("TypeError: .*unexpected keyword argument"),
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
    ],
}

RIGHT: dict[str, list[Example]] = {
    "RMT301": [
        Example(
            """\
import jax


def curvature(f):
    return jax.grad(jax.grad(jax.checkpoint(f)))
""",
        ),
    ],
    "RMT306": [
        Example(
            """\
import jax


def step(layer, weights, x):
    layer = jax.checkpoint(layer, prevent_cse=False)
    def loss(x):
        return jax.lax.fori_loop(0, 8, lambda i, x: layer(weights[i], x), x).sum()

    return jax.grad(loss)(x)
""",
        ),
    ],
    "RMT503": [
        Example(
            _NNX_NET % "layer",
            use="value = Net(nnx.Rngs(0))(jax.numpy.ones(3))\n",
            holds="assert value.shape == (3,)\n",
        ),
    ],
    "RMT404": [
        Example(
            """\
import jax


def checkpointed(f, policy=None):
    if isinstance(policy, str):
        policy = getattr(jax.checkpoint_policies, policy)
    return jax.checkpoint(f, policy=policy)


g = checkpointed(print, "dots_saveable")
""",
        ),
    ],
}


def wrong_examples(rule: Rule) -> list[Example]:
    """Return code in which a rule finds something, and the fixed code."""
    return [*rule.wrong, *WRONG.get(rule.code, [])]


def right_examples(rule: Rule) -> list[Example]:
    """Return code in which a rule finds nothing."""
    shown = rule.right_examples
    return [*shown, *RIGHT.get(rule.code, [])]
