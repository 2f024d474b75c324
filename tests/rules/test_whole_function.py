"""RMT301: the function that is differentiated is itself checkpointed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support import findings, no_findings, places

CODE = "RMT301"
HEAD = """\
from functools import partial
import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
from flax import nnx

def loss(w, x):
    return jnp.sum(jnp.tanh(w @ x) ** 2)

"""

FOUND = [
    ("g = jax.grad(jax.checkpoint(loss))", "high"),
    ("g = jax.value_and_grad(jax.remat(loss), has_aux=True)", "high"),
    ("g = jax.jit(jax.grad(jax.jit(jax.checkpoint(loss))))", "high"),
    ("g = jax.vmap(jax.grad(jax.checkpoint(loss)))", "high"),
    ("g = jax.grad(jax.vmap(jax.checkpoint(loss)))", "high"),
    ("g = jax.grad(partial(jax.checkpoint(loss), x=1.0))", "high"),
    ("g = jax.grad(fun=jax.checkpoint(loss))", "high"),
    ("g = partial(jax.grad, jax.checkpoint(loss))", "high"),
    ("grad = partial(jax.grad, argnums=1)\ng = grad(jax.checkpoint(loss))", "high"),
    ("from jax import grad as D\ng = D(jax.checkpoint(loss))", "high"),
    ("g = hk.grad(hk.remat(loss))", "high"),
    ("g = eqx.filter_value_and_grad(eqx.filter_checkpoint(loss))", "high"),
    ("g = nnx.grad(nnx.remat(loss))", "high"),
    ("from jaxopt import LBFGS\nsolver = LBFGS(fun=jax.checkpoint(loss))", "high"),
    ("g = jax.grad(jax.checkpoint(loss, policy=None))", "high"),
    ("g = jax.grad(jax.checkpoint(loss, policy=jax.checkpoint_policies.nothing_saveable))",
     "high"),
    ("def step(w):\n  @jax.value_and_grad\n  @jax.checkpoint\n  def f(w):\n    return w.sum()\n"
     "  return f(w)", "high"),
    ("def step(w):\n  f = jax.checkpoint(loss)\n  return jax.grad(f)(w, 1.0)", "high"),
    # Each iteration differentiates the checkpoint directly.
    ("def steps(w, xs):\n  f = jax.grad(jax.checkpoint(loss))\n"
     "  return jax.lax.scan(lambda w, x: (w - f(w, x), None), w, xs)", "high"),
    # Chosen by a flag.
    ("def step(w, remat):\n  f = loss\n  if remat:\n    f = jax.checkpoint(f)\n"
     "  return jax.grad(f)(w, 1.0)", "medium"),
    ("def step(w, remat):\n  f = jax.checkpoint(loss) if remat else loss\n"
     "  return jax.grad(lambda w: f(w, 1.0))(w)", "medium"),
    # A function that only calls it and reduces its result.
    ("def step(w):\n  f = jax.checkpoint(loss)\n  return jax.grad(lambda w: f(w, 1.0))(w)",
     "medium"),
    ("def step(model, w, x, y):\n  model = jax.checkpoint(model)\n  def err(w):\n"
     "    out = model(w, x)\n    d = (out - y) ** 2\n    return d.mean(), out\n"
     "  return jax.grad(err, has_aux=True)(w)", "medium"),
    ("def step(w, x):\n  net = nn.remat(nn.Dense)(4)\n"
     "  return jax.grad(lambda w: net.apply(w, x).sum())(w)", "medium"),
    # What a factory returns.
    ("def make(model):\n  @jax.checkpoint\n  def f(w):\n    return model(w).sum()\n"
     "  return f\n\nf = make(abs)\ndef step(w):\n  return jax.grad(f)(w)", "low"),
    ("def make(model):\n  apply = jax.remat(model.apply)\n"
     "  def f(w, x):\n    return ((apply(w, x) - 1) ** 2).mean()\n  return f\n\n"
     "def step(model, w, x):\n  f = make(model)\n  return jax.grad(f)(w, x)", "low"),
    # Other code may import it.
    ("@jax.checkpoint\ndef err(w):\n  return w.sum()\n\ng = jax.grad(err)", "low"),
    ("class T:\n  def __init__(self):\n    self.err = jax.checkpoint(loss)\n"
     "  def step(self, w):\n    return jax.grad(self.err)(w, 1.0)", "low"),
    ("def step(w):\n  f = jax.checkpoint(loss)\n  print(f(w, 0.0))\n"
     "  return jax.grad(f)(w, 1.0)", "low"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "confidence"), FOUND)
def test_found(code: str, confidence: str) -> None:
    [finding] = findings(HEAD + code + "\n", select=CODE)
    assert finding.confidence == confidence
    assert finding.severity == "note"
    assert [related.message for related in finding.related] == ["differentiated here"]


LEFT_ALONE = [
    "g = jax.grad(loss)",
    "g = jax.checkpoint(loss)",
    # With a policy, which is a documented idiom.
    "g = jax.grad(jax.checkpoint(loss, policy=jax.checkpoint_policies.dots_saveable))",
    "g = jax.grad(jax.checkpoint(loss, policy=policy))",
    "g = jax.grad(jax.checkpoint(loss, **options))",
    "g = jax.grad(jax.checkpoint(loss, policy=jax.checkpoint_policies.save_and_offload_only_these"
    "_names(names_which_can_be_saved=[], names_which_can_be_offloaded=['x'], offload_src='device',"
    " offload_dst='pinned_host')))",
    # The gradient is differentiated again.
    "h = jax.grad(jax.grad(jax.checkpoint(loss)))",
    "h = jax.hessian(jax.checkpoint(loss))",
    "h = jax.jvp(jax.grad(jax.checkpoint(loss)), (w,), (v,))",
    "g = jax.grad(jax.checkpoint(loss))\nh = jax.jacfwd(g)",
    "def slope(x):\n  return jax.grad(jax.checkpoint(loss))(x, 1.0)\n\n"
    "def energy(x):\n  return slope(x) ** 2\n\nforce = jax.grad(energy)",
    "@jax.grad\ndef outer(x):\n  return jax.grad(jax.checkpoint(loss))(x, 1.0).sum()",
    "def step(w):\n  f = jax.checkpoint(loss)\n"
    "  return jax.grad(f)(w, 1.0), jax.hessian(f)(w, 1.0)",
    # Work follows whose values are not needed at the same time.
    "def wave(x):\n  return jnp.sin(jnp.sin(x))\n\n"
    "g = jax.grad(lambda x: wave(jax.checkpoint(wave)(x)).sum())",
    "def critic(y):\n  return jnp.tanh(y @ y).sum()\n\ndef step(w, x):\n"
    "  y, back = jax.vjp(jax.checkpoint(loss), w, x)\n  return back(jax.grad(critic)(y))",
    # A test of the checkpoint.
    "def test_remat():\n  g = jax.grad(jax.checkpoint(loss))\n  assert g(1.0, 1.0) == 0",
    # One stage of several, or of a loop.
    "def step(w, a, b):\n  f = jax.checkpoint(loss)\n  def err(w, x):\n    return f(w, x)\n"
    "  total = lambda w: err(w, a) * err(w, b)\n  return jax.grad(err)(w, a), jax.grad(total)(w)",
    "def step(w, xs):\n  f = jax.checkpoint(loss)\n  def err(w, x):\n    return f(w, x)\n"
    "  total = lambda w: jax.lax.scan(lambda s, x: (s + err(w, x), None), 0.0, xs)[0]\n"
    "  return jax.grad(err)(w, xs[0]), jax.grad(total)(w)",
    "f = jax.checkpoint(loss)\ng = jax.grad(lambda w: loss(f(w, 1.0), 2.0))",
    "def g(w):\n  f = jax.checkpoint(loss)\n  return jax.grad(lambda w: f(w, 1.0) + f(w, 2.0))(w)",
    "def g(w, xs):\n  f = jax.checkpoint(loss)\n"
    "  total = lambda w: jax.lax.map(lambda x: f(w, x), xs).sum()\n"
    "  return jax.grad(total)(w), jax.grad(f)(w, 1.0)",
    "def g(w, xs):\n  f = jax.checkpoint(loss)\n  def total(w):\n"
    "    return sum(f(w, x) for x in xs)\n  return jax.grad(total)(w)",
    "def g(w, x):\n  f = jax.checkpoint(loss)\n  def total(w):\n    return f(w, x) * penalty(w)\n"
    "  return jax.grad(total)(w)",
    # A derivative rule keeps the result of `vjp`.
    "@jax.custom_vjp\ndef f(x):\n  return x\n\ndef fwd(x):\n"
    "  y, back = jax.vjp(jax.checkpoint(loss), x, 1.0)\n  return y, back\n\n"
    "f.defvjp(fwd, lambda back, t: back(t))",
    "@jax.custom_vjp\ndef f(x):\n  return x\n\ndef bwd(x, t):\n  g = jax.grad(jax.checkpoint(loss))"
    "\n  return (g(x, t),)\n\nf.defvjp(lambda x: (x, x), bwd)",
    "def keep(x):\n  y, back = jax.vjp(jax.checkpoint(loss), x, 1.0)\n  return y, back",
    "y, tangent = jax.linearize(jax.checkpoint(loss), 1.0, 2.0)",
    # Forward mode has no residuals.
    "h = jax.jacfwd(jax.checkpoint(loss))",
    # Other libraries.
    "from torch.utils.checkpoint import checkpoint\ng = jax.grad(checkpoint(loss))",
    "from other import grad\ng = grad(jax.checkpoint(loss))",
    "def checkpoint(f):\n  return f\ng = jax.grad(checkpoint(loss))",
    # Unknown code.
    "def step(w):\n  f = jax.checkpoint(loss)\n  register(f)\n  return jax.grad(f)(w, 1.0)",
    "g = jax.grad(unknown(jax.checkpoint(loss)))",
]  # fmt: skip

test_left_alone = no_findings(CODE, LEFT_ALONE, HEAD)


def test_across_files() -> None:
    files = {
        "losses.py": "import jax\n\n\n@jax.checkpoint\ndef loss(w):\n    return w.sum()\n",
        "train.py": "import jax\nfrom losses import loss\n\nstep = jax.grad(loss)\n"
        "other = jax.checkpoint(print)\n",
    }
    assert places(files, select=CODE) == ["losses.py:4:2 RMT301"]
    [finding] = findings(files, select=CODE)
    assert finding.confidence == "low"
    assert finding.related[0].source.path.name == "train.py"


GRADIENTS = """\
import jax


def slope(loss, value):
    gradient = jax.grad if value else jax.value_and_grad
    return gradient(jax.checkpoint(loss))
"""
LAYERS = """\
import jax
import jax.numpy as jnp


def gated(params, x, mode):
    y = x + params["w"]
    if mode == "sin":
        y = jnp.stack([y, x]).sum(0)
    return y


def mixed(params, x, mode):
    y = jnp.sin(x) * params["w"]
    return getattr(jnp, mode)(y)


layers = {"gated": gated, "mixed": mixed}


def run(params, x, mode, layer="mixed"):
    return jax.checkpoint(layers[layer], static_argnums=2)(params, x, mode)


def total(tree):
    return sum(jnp.sum(x) for x in jax.tree_util.tree_leaves(tree))


def train(params, x):
    def loss(params):
        return total(run(params, x, "sin"))

    return jax.value_and_grad(loss)(params)
"""


@pytest.mark.parametrize("code", [GRADIENTS, LAYERS])
def test_findings_do_not_depend_on_the_hash_seed(tmp_path, code):
    """The values that a name may have are in no order."""
    (tmp_path / "model.py").write_text(code)
    command = (sys.executable, "-m", "remat_migrate", "--select", "RMT301", "model.py")
    found = {
        subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(6)
    }
    assert len(found) == 1
    assert "differentiates" in found.pop()
