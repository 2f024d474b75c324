"""RMT303: a differentiated scan without a checkpoint on its body."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import cli, findings, fixed, no_findings, write_files

CODE = "RMT303"
HEAD = """\
from functools import partial
import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp

def layer(x, w):
    return jnp.tanh(x @ w), None

"""

FOUND = [
    ("loss = lambda ws, x: jax.lax.scan(layer, x, ws)[0].sum()\nstep = jax.grad(loss)", "medium"),
    ("@jax.value_and_grad\ndef loss(ws, x):\n  return hk.scan(layer, x, ws)[0].sum()", "medium"),
    # The scan is in a function that the differentiated one calls.
    ("def net(ws, x):\n  return jax.lax.scan(layer, x, ws)[0]\n\n"
     "def loss(ws, x):\n  return net(ws, x).sum()\n\nstep = jax.jit(jax.grad(loss))", "medium"),
    # A function that the body calls does the work.
    ("def body(x, w):\n  y, _ = layer(x, w)\n  return y, y\n\n"
     "step = jax.grad(lambda ws, x: jax.lax.scan(body, x, ws)[0].sum())", "medium"),
    # A loop of the project, which is passed the body.
    ("def loop(f, x, ws):\n  def body(x, w):\n    return f(x, w)[0], None\n"
     "  return jax.lax.scan(body, x, ws)[0]\n\n"
     "step = jax.grad(lambda ws, x: loop(layer, x, ws).sum())", "medium"),
    ("step = jax.grad(lambda ws, x: jax.lax.scan(layer, x, ws, unroll=n)[0].sum())", "low"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "confidence"), FOUND)
def test_found(code: str, confidence: str) -> None:
    [finding] = findings(HEAD + code + "\n", select=CODE)
    assert (finding.confidence, finding.severity) == (confidence, "note")


LEFT_ALONE = [
    "run = lambda ws, x: jax.lax.scan(layer, x, ws)",
    "step = jax.grad(lambda ws, x: jax.lax.scan(jax.checkpoint(layer), x, ws)[0].sum())",
    "block = jax.checkpoint(layer)\n"
    "step = jax.grad(lambda ws, x: jax.lax.scan(lambda x, w: block(x, w), x, ws)[0].sum())",
    "def body(x, w):\n  return jax.checkpoint(layer)(x, w)\n\n"
    "step = jax.grad(lambda ws, x: jax.lax.scan(body, x, ws)[0].sum())",
    # No loop.
    "step = jax.grad(lambda ws, x: jax.lax.scan(layer, x, ws, unroll=8)[0].sum())",
    "step = jax.grad(lambda ws, x: jax.lax.scan(layer, x, ws, length=1)[0].sum())",
    # Hardly any residuals.
    "step = jax.grad(lambda x, y: jax.lax.scan(lambda c, a: (c + a, c), x, y)[0].sum())",
    # What is differentiated passes another body.
    "def loop(f, x, ws):\n  def body(x, w):\n    return f(x, w)[0], None\n"
    "  return jax.lax.scan(body, x, ws)[0]\n\n"
    "run = lambda ws, x: loop(layer, x, ws)\n"
    "step = jax.grad(lambda ws, x: loop(lambda x, w: (x + w, None), x, ws).sum())",
    # The rule of a custom derivative.
    "@jax.grad\ndef loss(ws, x):\n  @jax.custom_vjp\n  def net(ws, x):\n"
    "    return forward(ws, x)[0]\n"
    "  def forward(ws, x):\n    return jax.lax.scan(layer, x, ws)[0], x\n"
    "  net.defvjp(forward, backward)\n  return net(ws, x).sum()",
    # The body calls an unknown function.
    "def step(ws, env, policy):\n  def body(s, _):\n    return env_step(s, policy(s)), None\n"
    "  return jax.grad(lambda s: jax.lax.scan(body, s, None, 9)[0].sum())(ws)",
    # Forward mode has no residuals.
    "step = jax.jacfwd(lambda ws, x: jax.lax.scan(layer, x, ws)[0].sum())",
    # Already inside a checkpoint.
    "@jax.checkpoint\ndef stage(ws, x):\n  return jax.lax.scan(layer, x, ws)[0]\n\n"
    "step = jax.grad(lambda ws, x: stage(ws, x).sum())",
    # The gradient is inside the iteration.
    "def train(ws, xs):\n  def body(w, x):\n"
    "    return w - jax.grad(lambda w: (x @ w).sum())(w), None\n"
    "  return jax.lax.scan(body, ws, xs)",
    "step = jax.grad(lambda x: jax.lax.map(lambda a: a @ a, x).sum())",
    # The name of a parameter says that it is checkpointed.
    "def run(remat_layer, ws, x):\n"
    "  body = lambda c, w: (remat_layer(c, w), c)\n"
    "  return jax.grad(lambda x: jax.lax.scan(body, x, ws)[0].sum())",
    "from other import scan\nstep = jax.grad(lambda ws, x: scan(layer, x, ws)[0].sum())",
]

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD)


def test_a_file_without_checkpoints_is_checked(tmp_path: Path) -> None:
    write_files(tmp_path, HEAD + FOUND[0][0] + "\n")
    ran = cli(tmp_path, "check", "--select", CODE, "example.py")
    assert "RMT303" in ran.out


WHOLE = """\
@jax.checkpoint
def stack(ws, x):
    return jax.lax.scan(layer, x, ws)[0]


def loss(ws, x):
    x = jnp.tanh(x @ ws[0])
    return jnp.tanh(%s @ ws[0]).sum()


step = jax.grad(loss)
"""


def test_a_whole_scan() -> None:
    [finding] = findings(HEAD + WHOLE % "stack(ws, x)")
    assert (finding.code, finding.fix is not None) == ("RMT301", True)
    # Two segments are two stages.
    assert findings(HEAD + WHOLE % "stack(ws, stack(ws, x))", select=CODE) == []


@pytest.mark.parametrize("call", ["jax.debug.callback(keep, x)", "jax.debug.print('{}', x)"])
def test_a_body_that_calls_back_is_not_fixed(call: str) -> None:
    """A checkpoint would run the callback once more."""
    code = (
        f"def body(x, w):\n    {call}\n    return jnp.tanh(x @ w), None\n\n"
        "step = jax.grad(lambda ws, x: jax.lax.scan(body, x, ws)[0].sum())\n"
    )
    assert fixed(HEAD + code, select=CODE, unsafe=True)["example.py"] == HEAD + code
