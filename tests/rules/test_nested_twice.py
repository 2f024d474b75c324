"""RMT305: a checkpoint around nothing but checkpointed code."""

from __future__ import annotations

import pytest
from support import findings, fixed, no_findings

CODE = "RMT305"
HEAD = """\
from functools import partial
import flax.linen as nn
import jax

def f(x):
    return x * x

def g(x):
    return x @ x

dots = jax.checkpoint_policies.dots_saveable
"""

FOUND = [
    ("B = nn.remat(nn.remat(nn.Dense))", "high"),
    # The inner one has the barriers.
    ("y = jax.checkpoint(jax.checkpoint(f), prevent_cse=False)", "high"),
]


@pytest.mark.parametrize(("code", "confidence"), FOUND)
def test_found(code: str, confidence: str) -> None:
    [finding] = findings(HEAD + code + "\n", select=CODE)
    assert (finding.confidence, finding.severity) == (confidence, "note")
    assert [related.message for related in finding.related] == ["the inner checkpoint"]


LEFT_ALONE = [
    "y = jax.checkpoint(f)",
    # Only the outer one has barriers.
    "y = jax.checkpoint(jax.checkpoint(f, prevent_cse=False))",
    # Two policies, or perhaps two.
    "y = jax.checkpoint(jax.checkpoint(f, policy=dots))",
    "y = jax.checkpoint(jax.checkpoint(f), policy=dots)",
    "y = jax.checkpoint(jax.checkpoint(f, **options))",
    # More code than the inner checkpoint.
    "h = jax.checkpoint(f)\ny = jax.checkpoint(lambda x: h(x) + 1)",
    "h = jax.checkpoint(f)\ny = jax.checkpoint(lambda x: h(h(x)))",
    "h = jax.checkpoint(f)\ny = jax.checkpoint(lambda x: h(g(x)))",
    # Many layers, each a checkpoint.
    "B = nn.remat(nn.remat_scan(nn.Dense, (4, 4)), prevent_cse=False)",
    # One or the other.
    "def k(x, remat):\n  h = jax.checkpoint(f) if remat else f\n  return jax.checkpoint(h)(x)",
    "h = f\nfor _ in range(3):\n  h = jax.checkpoint(h)",
    # Another function is between the two.
    "y = jax.checkpoint(jax.grad(jax.checkpoint(f)))",
    # A whole function with other stages: RMT301.
    "def step(x):\n  h = jax.checkpoint(f)\n  loss = lambda x: g(h(h(x)))\n"
    "  return jax.grad(jax.checkpoint(loss))(x)",
    "from other import remat\ny = jax.checkpoint(remat(f))",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD)


def test_the_fix_of_a_whole_function_makes_no_double() -> None:
    code = """\
import jax
import jax.numpy as jnp


@jax.checkpoint
def cell(h, w):
    return jnp.tanh(h @ w)


def body(h, w):
    return cell(h, w), None


def step(ws, h):
    def loss(ws):
        return %s.sum()

    return jax.grad(jax.checkpoint(loss))(ws)
"""
    for result in ("jax.lax.scan(body, h, ws)[0]", "cell(body(h, ws[0])[0] @ ws[1], ws[2])"):
        after = fixed(code % result, select="RMT3", unsafe=True)["example.py"]
        assert "jax.checkpoint(body" not in after
        assert "jax.checkpoint(loss)" not in after or result.startswith("cell")
