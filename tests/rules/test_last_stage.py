"""RMT302: a checkpoint on the last stage of what is differentiated."""

from __future__ import annotations

import pytest
from support import findings

CODE = "RMT302"
HEAD = """\
from functools import partial
import jax
import jax.numpy as jnp

def layer(x, w):
    return jnp.tanh(x @ w)

def vocab_layer(x, w):
    return jax.nn.log_softmax(x @ w)

"""
STEP = (
    "def step(ws, x):\n  last = jax.checkpoint({of})\n  def loss(ws):\n{body}  return {how}(ws)\n"
)


def code(body: str, of: str = "layer", how: str = "jax.grad(loss)") -> str:
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    return HEAD + STEP.format(of=of, body=indented, how=how)


FOUND = [
    "return last(layer(x, ws[0]), ws[1]).sum()",
    "h = layer(x, ws[0])\ny = last(h, ws[1])\nreturn jnp.mean(y ** 2)",
    "h = x @ ws[0]\nh = layer(h, ws[1])\nreturn last(h, ws[2]).mean(), {}",
    "h = jax.checkpoint(layer)(x, ws[0])\nreturn last(h, ws[1]).sum()",
]


@pytest.mark.parametrize("body", FOUND)
def test_found(body: str) -> None:
    [finding] = findings(code(body), select=CODE)
    assert (finding.confidence, finding.severity) == ("medium", "note")


LEFT_ALONE = [
    # Not last, not the only one, or perhaps neither.
    "return layer(last(x, ws[0]), ws[1]).sum()",
    "return (last(x, ws[0]) @ ws[1]).sum()",
    "return last(last(x, ws[0]), ws[1]).sum()",
    "h = layer(x, ws[0])\nreturn (last(h, ws[1]) * h).sum() + layer(x, ws[2]).sum()",
    "for w in ws:\n  x = last(x, w)\nreturn x.sum()",
    "h = layer(x, ws[0])\ny = last(h, ws[1])\nkeep(y)\nreturn y.sum()",
    # All there is: RMT301.
    "return last(x, ws[0]).sum()",
]


@pytest.mark.parametrize("body", LEFT_ALONE)
def test_left_alone(body: str) -> None:
    assert findings(code(body), select=CODE) == []


def test_a_head_is_left_alone() -> None:
    assert findings(code(FOUND[0], of="vocab_layer"), select=CODE) == []


def test_what_is_not_seen_is_left_alone() -> None:
    assert findings(code(FOUND[0], of="unknown"), select=CODE) == []


def test_a_policy_is_left_alone() -> None:
    of = "layer, policy=jax.checkpoint_policies.dots_saveable"
    assert findings(code(FOUND[0], of=of), select=CODE) == []


@pytest.mark.parametrize("how", ["jax.hessian(loss)", "jax.grad(jax.grad(loss))", "jax.jit(loss)"])
def test_only_one_gradient(how: str) -> None:
    assert findings(code(FOUND[0], how=how), select=CODE) == []
