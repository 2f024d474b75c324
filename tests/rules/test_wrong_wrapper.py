"""RMT503: a checkpoint function that does not support the module that it wraps."""

from __future__ import annotations

import pytest
from support import findings, fixed

CODE = "RMT503"
FLAX = """\
import jax
import flax.linen as nn
from functools import partial


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


class Net(nn.Module):
    layer: nn.Module

    def setup(self):
        self.block = Block()

    def inner(self, x):
        return self.block(x)

    def __call__(self, x):
        return %s
"""
HAIKU = """\
import haiku as hk
import jax


class Block(hk.Module):
    def __call__(self, x):
        return hk.Linear(3)(x)


%s
"""


def found(code: str, **options: object) -> list[str]:
    return [f.message for f in findings(code, select=CODE, **options)]


def test_options_are_kept_and_imports_added() -> None:
    before = "def forward(x):\n    return jax.remat(Block(), prevent_cse=False)(x)\n\n\n"
    before += "model = hk.transform(forward)"
    after = HAIKU % before.replace("jax.remat", "hk.remat")
    assert fixed(HAIKU % before, select=CODE) == {"example.py": after}


BY_HAND = [
    (FLAX % "x").replace("    @nn.compact", "    @nn.compact\n    @jax.checkpoint"),
]


@pytest.mark.parametrize("code", BY_HAND)
def test_manual_fixes(code: str) -> None:
    [finding] = findings(code, select=CODE)
    assert finding.fix is not None
    assert finding.fix.safety == "manual"


LEFT_ALONE = [
    FLAX % "jax.checkpoint(self.block.apply)(variables, x)",
    (FLAX % "x").replace(
        "    @nn.compact", "    @partial(jax.checkpoint, static_argnums=(0,))\n    @nn.compact"
    ),
    # The parameters exist already, or are created elsewhere.
    HAIKU % (
        "def forward(x):\n    block = Block()\n    y = block(x)\n"
        "    return jax.checkpoint(block)(y)\n\n\nmodel = hk.transform(forward)"
    ),
    "import equinox as eqx\nimport jax\n\nblock = jax.checkpoint(eqx.nn.Dropout(0.1))\n",
    "from flax import nnx\nimport jax\n\nlayer = nnx.Linear(3, 3, rngs=nnx.Rngs(0))\n"
    "block = jax.checkpoint(layer)\nother = nnx.remat(layer)\n",
]  # fmt: skip


@pytest.mark.parametrize("code", LEFT_ALONE)
def test_left_alone(code: str) -> None:
    assert found(code) == []
