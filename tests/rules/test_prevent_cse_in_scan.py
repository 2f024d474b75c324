"""RMT304: a checkpoint in a loop that keeps `prevent_cse=True`."""

from __future__ import annotations

import pytest
from support import findings, no_findings, places

CODE = "RMT304"
HEAD = """\
from functools import partial
import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
from flax import nnx
from jax import lax

def step(c, x):
    return c * x, None

"""

FOUND = [
    ("y = lax.scan(jax.checkpoint(step, prevent_cse=True), 0.0, xs, unroll=1)", "high"),
    ("y = lax.scan(jax.checkpoint(step), 0.0, xs, 8, False, 1)", "high"),
    ("run = partial(lax.scan, jax.checkpoint(step))\ny = run(0.0, xs)", "high"),
    ("y = lax.fori_loop(0, 8, jax.checkpoint(lambda i, x: x), 0.0)", "high"),
    ("y = hk.layer_stack(8)(hk.remat(step))(xs)", "high"),
    # Assigned, reassigned, chosen by a condition.
    ("def f(xs):\n  @jax.checkpoint\n  def body(c, x):\n    return c, x\n"
     "  return lax.scan(body, 0.0, xs)", "high"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "confidence"), FOUND)
def test_found(code: str, confidence: str) -> None:
    [finding] = findings(HEAD + code + "\n", select=CODE)
    assert finding.confidence == confidence
    assert finding.severity == "note"
    assert [related.message for related in finding.related] == ["the loop"]


LEFT_ALONE = [
    "y = lax.scan(step, 0.0, xs)",
    "y = lax.scan(jax.checkpoint(step, prevent_cse=False), 0.0, xs)",
    "y = lax.scan(jax.checkpoint(step, prevent_cse=flag), 0.0, xs)",
    "y = lax.scan(jax.checkpoint(step, **options), 0.0, xs)",
    # Not compiled as a loop, or perhaps not.
    "y = lax.scan(jax.checkpoint(step), 0.0, xs, unroll=2)",
    "y = lax.scan(jax.checkpoint(step), 0.0, xs, unroll=True)",
    "y = lax.scan(jax.checkpoint(step), 0.0, xs, unroll=n if c else 1)",
    "y = lax.scan(jax.checkpoint(step), 0.0, xs, length=1)",
    "y = lax.scan(jax.checkpoint(step), 0.0, xs, **options)",
    "scan = partial(lax.scan, unroll=4)\ny = scan(jax.checkpoint(step), 0.0, xs)",
    "y = lax.fori_loop(0, 1, jax.checkpoint(lambda i, x: x), 0.0)",
    "y = lax.associative_scan(jax.checkpoint(step), xs)",
    "y = hk.layer_stack(1)(hk.remat(step))(xs)",
    "Layers = nn.scan(nn.remat(nn.Dense), length=4, unroll=4 if c else 1)",
    "y = lax.cond(c, jax.checkpoint(step), step, 0.0, 1.0)",
    "y = jax.vmap(jax.checkpoint(step))(xs, xs)",
    # `remat_scan` sets it itself.
    "y = nn.remat_scan(nn.Dense, lengths=(4, 4))(8)",
    # Also used outside a loop, or in unknown code.
    "def f(x, xs):\n  body = jax.checkpoint(step)\n  x, _ = body(x, xs[0])\n"
    "  return lax.scan(body, x, xs)",
    "def f(x, xs, scan):\n  body = jax.checkpoint(step)\n  if scan:\n"
    "    return lax.scan(body, x, xs)\n  for w in xs:\n    x, _ = body(x, w)\n  return x",
    "def f(x, xs):\n  body = jax.checkpoint(step)\n  keep(body)\n  return lax.scan(body, x, xs)",
    "def f(x, xs):\n  block = jax.checkpoint(step)\n  def body(c, x):\n    return block(c, x)\n"
    "  body(x, xs[0])\n  return lax.scan(body, x, xs)",
    # A gradient inside an iteration: both passes are in one body.
    "def f(x, xs):\n  loss = jax.checkpoint(step)\n"
    "  return lax.scan(lambda c, x: (jax.grad(loss)(c, x), None), x, xs)",
    # Inside another checkpoint: an iteration contains both recomputations.
    "def f(x, xs):\n  block = jax.checkpoint(step)\n  def body(c, x):\n    return block(c, x)\n"
    "  return lax.scan(jax.checkpoint(body, prevent_cse=False), x, xs)",
    # Of other libraries.
    "from other import scan\ny = scan(jax.checkpoint(step), 0.0, xs)",
    "from torch.utils.checkpoint import checkpoint\ny = lax.scan(checkpoint(step), 0.0, xs)",
    "def scan(f, x):\n  return f(x)\ny = scan(jax.checkpoint(step), 0.0)",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD)


def test_a_scan_wrapper_in_the_settings() -> None:
    files = {
        "pyproject.toml": '[tool.remat-migrate.scans]\n"layers.scan_layers" = "jax.lax.scan"\n',
        "layers.py": "def scan_layers(f, init, xs, length=None, reverse=False, unroll=1):\n"
        "    return run(f, init, xs)\n",
        "model.py": "import jax\nfrom layers import scan_layers\n\n"
        "y = scan_layers(jax.checkpoint(f), x, ws)\n"
        "z = scan_layers(jax.checkpoint(f), x, ws, unroll=2)\n",
    }
    assert places(files, select=CODE) == ["model.py:4:17 RMT304"]
    del files["pyproject.toml"]
    assert places(files, select=CODE) == []


def test_checkpoints_of_one_loop_are_one_finding() -> None:
    code = (
        "def stack(f, x, n):\n  return lax.scan(f, x, None, n)[0]\n\n"
        "def net(x):\n  x = stack(jax.checkpoint(step), x, 4)\n"
        "  return stack(jax.checkpoint(lambda c, x: step(c, 2)), x, 4)\n"
    )
    [finding] = findings(HEAD + code, select=CODE)
    assert [related.message for related in finding.related] == ["and this one", "the loop"]
