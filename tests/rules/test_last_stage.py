"""RMT302: a checkpoint on the last stage of what is differentiated."""

from __future__ import annotations

import pytest
from support import findings, fixed

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


def test_a_head_is_left_alone() -> None:
    assert findings(code(FOUND[0], of="vocab_layer"), select=CODE) == []
    # Its name does not make it one, nor does a softmax before its last product.
    assert len(findings(code(FOUND[0], of="decode_tokens"), select=CODE)) == 1


def test_fixed_with_an_option_of_the_same_checkpoint() -> None:
    """One fix removes the checkpoint, and another an option of it."""
    last = "jax.checkpoint(lambda x, w: layer(x, w), concrete=False)(layer(x, ws[0]), ws[1])"
    after = fixed(code(f"return {last}.sum()"), select=(CODE, "RMT101"), unsafe=True)
    assert "return (lambda x, w: layer(x, w))(layer(x, ws[0]), ws[1])" in after["example.py"]


def test_unknown_code_is_left_alone() -> None:
    assert findings(code(FOUND[0], of="unknown"), select=CODE) == []


def test_a_policy_is_left_alone() -> None:
    of = "layer, policy=jax.checkpoint_policies.dots_saveable"
    assert findings(code(FOUND[0], of=of), select=CODE) == []


@pytest.mark.parametrize("how", ["jax.hessian(loss)", "jax.grad(jax.grad(loss))", "jax.jit(loss)"])
def test_only_one_gradient(how: str) -> None:
    assert findings(code(FOUND[0], how=how), select=CODE) == []


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
    # A loss with metrics.
    "h = layer(x, ws[0])\nout = jax.checkpoint(layer)(h, ws[1])\nloss = mse(out, y)\n"
    'return loss, {"loss": loss, "scale": jnp.abs(out).max()}',
    "h = layer(x, ws[0])\nout = jax.checkpoint(layer)(h, ws[1])\nloss = mse(out, y)\n"
    "return loss, Aux(loss=loss, out=out)",
    "h = layer(x, ws[0])\nloss = jax.checkpoint(mse)(h, y)\n"
    "return loss, dict(loss=loss, accuracy=accuracy(h, y))",
    "h = layer(x, ws[0])\nmetrics = {}\nloss = jax.checkpoint(mse)(h, y)\n"
    'metrics["loss"] = loss\nmetrics.update(double=loss * 2)\nreturn loss, metrics',
    "h = layer(x, ws[0])\nloss = jax.checkpoint(mse)(h, y)\nloss += 1e-4 * jnp.sum(ws[0] ** 2)\n"
    "jax.debug.print('{}', loss)\nreturn loss",
    # Loops over stages.
    "for w in ws:\n    x = layer(x, w)\nreturn jax.checkpoint(mse)(x, y)",
    "for w in ws[:-1]:\n    x = jax.checkpoint(layer)(x, w)\nx = x @ ws[-1]\n"
    "return jax.checkpoint(mse)(x, y)",
    "i = 0\nwhile i < 4:\n    x = layer(x, ws[i])\n    i += 1\nreturn jax.checkpoint(mse)(x, y)",
    "hs = [layer(x, w) for w in ws]\nreturn jax.checkpoint(mse)(jnp.stack(hs), y)",
    # In a function that the loss calls.
    "return jax.checkpoint(mse)(forward(ws, x), y), {}",
    "def apply(ws):\n    h = layer(x, ws[0])\n    return jax.checkpoint(layer)(h, ws[1])\n"
    "out = apply(ws)\nreturn cross_entropy(out, y)",
    # What reads one column keeps little.
    "q = jax.checkpoint(layer)(layer(x, ws[0]), ws[1])\nreturn optax.huber_loss(q[:, 0], y).mean()",
]


@pytest.mark.parametrize("body", LAST_OF_TRAINING)
def test_last_of_a_training_step(body: str) -> None:
    [finding] = findings(training(body), select=CODE)
    assert finding.fix is not None


OTHER_TRAINING = [
    # In a loop, or before one.
    "total = 0.0\nfor w in ws:\n    total += jax.checkpoint(mse)(layer(x, w), y)\nreturn total",
    "h = jax.checkpoint(layer)(x, ws[0])\nfor w in ws:\n    h = layer(h, w)\nreturn mse(h, y), {}",
    "block = jax.checkpoint(layer)\nfor w in ws[1:]:\n    x = block(x, w)\n"
    "return mse(block(x, ws[0]), y)",
    # The result is larger than the inputs.
    "return jax.checkpoint(vocab_loss)(layer(x, ws[0]), y)",
    "return jax.checkpoint(pairs)(layer(x, ws[0]), y)",
    # It may keep several arrays as large as the logits.
    "return jax.checkpoint(cross_entropy)(layer(x, ws[0]), y)",
    "@jax.checkpoint\ndef sigmoid(x):\n    return jnp.mean(jax.nn.softplus(x) - x * y)\n"
    "return sigmoid(layer(x, ws[0]))",
    "@jax.checkpoint\ndef error(x):\n    return jnp.mean((jnp.tanh(x) - y) ** 2)\n"
    "return error(layer(x, ws[0]))",
    # The loss keeps two arrays as large as the result.
    "out = jax.checkpoint(layer)(layer(x, ws[0]), ws[1])\n"
    "return optax.sigmoid_binary_cross_entropy(out, y).mean()",
    "out = jax.checkpoint(layer)(layer(x, ws[0]), ws[1])\nreturn optax.huber_loss(out, y).mean()",
    "noise = jax.random.normal(key, x.shape)\n"
    "out = jax.checkpoint(layer)(layer(x + noise, ws[0]), ws[1])\nreturn mse(out, noise)",
    # The code after it may be large.
    "out = jax.checkpoint(layer)(layer(x, ws[0]), ws[1])\nreturn record(out, y), {}",
    "out = jax.checkpoint(layer)(layer(x, ws[0]), ws[1])\n"
    'return mse(out, y), {"next": layer(out, ws[2]).mean()}',
    "out = jax.checkpoint(layer)(layer(x, ws[0]), ws[1])\n"
    "return jax.lax.map(lambda w: layer(out, w).sum(), ws).sum(), {}",
    "h = layer(x, ws[0])\nreturn jax.checkpoint(mse)(h, y) + mse(layer(h, ws[1]), y)",
    # Its result is not used.
    "h = layer(x, ws[0])\nextra = jax.checkpoint(layer)(h, ws[1])\nreturn h.sum(), {}",
]


@pytest.mark.parametrize("body", OTHER_TRAINING)
def test_other_training_steps(body: str) -> None:
    assert findings(training(body), select=CODE) == []
