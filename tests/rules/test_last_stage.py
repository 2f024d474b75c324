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

def decode_tokens(x, w):
    return jnp.tanh(jax.nn.softmax(x @ w) @ w)

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
    # Not the last stage, or not certainly.
    "return layer(last(x, ws[0]), ws[1]).sum()",
    "return (last(x, ws[0]) @ ws[1]).sum()",
    "return last(last(x, ws[0]), ws[1]).sum()",
    "h = layer(x, ws[0])\nreturn (last(h, ws[1]) * h).sum() + layer(x, ws[2]).sum()",
    "for w in ws:\n  x = last(x, w)\nreturn x.sum()",
    "h = layer(x, ws[0])\ny = last(h, ws[1])\nkeep(y)\nreturn y.sum()",
    # The whole function: RMT301.
    "return last(x, ws[0]).sum()",
]


@pytest.mark.parametrize("body", LEFT_ALONE)
def test_left_alone(body: str) -> None:
    assert findings(code(body), select=CODE) == []


def test_unknown_code_is_left_alone() -> None:
    assert findings(code(FOUND[0], of="unknown"), select=CODE) == []


# Losses of training steps: with metrics, after loops, on logits.
TRAINING = """\
from typing import NamedTuple
import jax
import jax.numpy as jnp
import optax

class Aux(NamedTuple):
    loss: jax.Array
    out: jax.Array

def layer(x, w):
    return jnp.tanh(x @ w)

def mse(out, y):
    return jnp.mean((out - y) ** 2)

def cross_entropy(scores, labels):
    logp = jax.nn.log_softmax(scores)
    return -jnp.take_along_axis(logp, labels[..., None], axis=-1).mean()

def pairs(z, y):
    return jnp.exp(-jnp.sum((z[:, None] - z[None]) ** 2, -1)).mean()

def vocab_loss(x, y):
    return cross_entropy(x @ x, y)

def accuracy(scores, labels):
    return jnp.mean(jnp.argmax(scores, -1) == labels)

def forward(ws, x):
    for w in ws:
        x = layer(x, w)
    return x

"""
LOSS = "def loss(ws, x, y):\n{body}\nstep = jax.value_and_grad(loss, has_aux=True)\n"


def training(body: str) -> str:
    return TRAINING + LOSS.format(body="".join(f"    {line}\n" for line in body.splitlines()))


LAST_OF_TRAINING = [
    "h = layer(x, ws[0])\nmetrics = {}\nloss = jax.checkpoint(mse)(h, y)\n"
    'metrics["loss"] = loss\nmetrics.update(double=loss * 2)\nreturn loss, metrics',
    # What reads one column keeps little.
    "q = jax.checkpoint(layer)(layer(x, ws[0]), ws[1])\nreturn optax.huber_loss(q[:, 0], y).mean()",
]


@pytest.mark.parametrize("body", LAST_OF_TRAINING)
def test_last_of_a_training_step(body: str) -> None:
    [finding] = findings(training(body), select=CODE)
    assert finding.fix is not None
