"""RMT306: `prevent_cse=False` outside loops."""

from __future__ import annotations

import pytest
from support import findings, no_findings

CODE = "RMT306"
HEAD = """\
from functools import partial
import jax

def f(x):
    return x * x

def g(x):
    return x + 1

"""

FOUND = [
    # In a Python loop over the layers of a module.
    ("from flax import nnx\n\nclass Net(nnx.Module):\n  def __call__(self, x):\n"
     "    for layer in self.layers:\n"
     "      x = nnx.remat(Block.__call__, prevent_cse=False)(layer, x)\n    return x", "low"),
    ("from flax import nnx\n\nclass Block(nnx.Module):\n  @nnx.remat(prevent_cse=False)\n"
     "  def __call__(self, x):\n    return x\n\nclass Net(nnx.Module):\n"
     "  def __init__(self):\n    self.layers = [Block() for _ in range(4)]\n\n"
     "  def __call__(self, x):\n    for layer in self.layers:\n      x = layer(x)\n    return x",
     "low"),
    ("import flax.linen as nn\n\nclass Block(nn.Module):\n  @nn.compact\n"
     "  def __call__(self, x):\n    return nn.Dense(4)(x)\n\n"
     "class Net(nn.Module):\n  def setup(self):\n"
     "    block = nn.remat(Block, prevent_cse=False)\n"
     "    self.layers = [block() for _ in range(4)]\n\n"
     "  def __call__(self, x):\n    for layer in self.layers:\n      x = layer(x)\n    return x\n\n"
     "step = jax.grad(lambda p, x: Net().apply(p, x).sum())", "medium"),
    # An instance is passed to a scan on one branch.
    ("import flax.linen as nn\n\nclass Net(nn.Module):\n  @nn.compact\n"
     "  def __call__(self, x, scan):\n    block = nn.remat(nn.Dense, prevent_cse=False)\n"
     "    if scan:\n      return nn.scan(lambda m, c, _: (m(c), None), length=4)(block(4), x, ())\n"
     "    for i in range(4):\n      x = block(4)(x)\n    return x", "low"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "confidence"), FOUND)
def test_found(code: str, confidence: str) -> None:
    [finding] = findings(HEAD + code + "\n", select=CODE)
    assert (finding.confidence, finding.severity) == (confidence, "note")


LEFT_ALONE = [
    "def step(x):\n  h = jax.checkpoint(f)\n  return jax.grad(lambda x: g(h(x)))(x)",
    "def step(x, c):\n  h = jax.checkpoint(f, prevent_cse=not c)\n"
    "  return jax.grad(lambda x: g(h(x)))(x)",
    "def make(f, prevent_cse=True):\n  return jax.checkpoint(f, prevent_cse=prevent_cse)\n\n"
    "def step(x):\n  h = make(f)\n  return jax.grad(lambda x: g(h(x)))(x)\n\n"
    "def run(x):\n  return make(f, prevent_cse=False)(x)",
    # Nothing visible differentiates it.
    "def run(x):\n  return jax.checkpoint(f, prevent_cse=False)(x)",
    # In a loop.
    "def step(x, xs):\n  h = jax.checkpoint(f, prevent_cse=False)\n"
    "  return jax.grad(lambda x: jax.lax.scan(lambda c, _: (h(c), None), x, xs)[0])(x)",
    "def inner(x):\n  return jax.checkpoint(f, prevent_cse=False)(x)\n\n"
    "def step(x, xs):\n  def body(c, _):\n    return inner(c), None\n"
    "  return jax.grad(lambda x: jax.lax.scan(body, x, xs)[0])(x)",
    "def step(x, xs):\n  def body(c, _):\n    return inner(c), None\n"
    "  def inner(x):\n    return jax.checkpoint(f, prevent_cse=False)(x)\n"
    "  return jax.grad(lambda x: inner(jax.lax.scan(body, x, xs)[0]))(x)",
    "def step(x):\n  h = jax.checkpoint(f, prevent_cse=False)\n  keep(h)\n"
    "  return jax.grad(lambda x: g(h(x)))(x)",
    # Passed to code that may run it in a loop.
    "def step(x, xs):\n  def block(x):\n    return jax.checkpoint(f, prevent_cse=False)(x)\n"
    "  def loss(x):\n    apply = transform(block)\n"
    "    return jax.lax.scan(lambda c, w: (apply(c, w), None), x, xs)[0]\n"
    "  return jax.grad(loss)(x)",
    # Forward mode has no residuals.
    "def step(x):\n  h = jax.checkpoint(f, prevent_cse=False)\n"
    "  return jax.jacfwd(lambda x: g(h(x)))(x)",
    # The whole function: RMT301.
    "def step(x):\n  return jax.grad(jax.checkpoint(f, prevent_cse=False))(x)",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD)
