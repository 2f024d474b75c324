"""Where the checkpoints of a plan go: loops in called functions, calls in expressions, models."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np
import pytest
from support import cli

jax = pytest.importorskip("jax")

MODEL = '''\
import dataclasses
import functools

import jax
import jax.numpy as jnp


def layer(w, x):
    h = jax.nn.gelu(x @ w["up"])
    return x + jnp.tanh(h @ w["down"])


def net(ws, x):
    def step(carry, w):
        x, count = carry
        return (layer(w, x), count + 1), jnp.mean(x)

    (x, _), means = jax.lax.scan(step, (x, 0), ws)
    return x, means


def nested(ws, x):
    """The loop runs in a function that the loss calls, and has a carry of two values."""
    y, means = net(ws, x)
    return jnp.mean(y**2) + means.sum()


def repeat(function, ws, x):
    return jax.lax.scan(lambda x, w: (function(w, x), None), x, ws)[0]


def passed(ws, x):
    """A function that is passed on is the body of a loop elsewhere."""
    return jnp.mean(repeat(layer, ws, x) ** 2)


def reduced(ws, x):
    """The stage is a function in an expression, and its argument a product."""
    layers = [jax.tree.map(lambda w: w[n], ws) for n in range(6)]
    return jnp.mean(functools.reduce(lambda x, w: layer(w, x), layers, x) ** 2)


@functools.partial(jax.tree_util.register_dataclass, data_fields=["ws", "name", "train", "seen"],
                   meta_fields=[])
@dataclasses.dataclass
class Model:
    ws: list
    name: str
    train: bool
    seen: jax.Array


def of_model(model, x):
    """The model also holds a string, a bool and integers."""
    for w in model.ws:
        x = layer(w, x) if model.train and model.name else x
    return jnp.mean(x**2)


def args():
    f = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
    return {"up": f(6, 32, 128), "down": f(6, 128, 32)}, f(512, 32)


def model_args():
    ws, x = args()
    one = {name: jax.ShapeDtypeStruct(w.shape[1:], w.dtype) for name, w in ws.items()}
    return Model([one] * 6, "model", True, jax.ShapeDtypeStruct((3,), jnp.int32)), x
'''
# What is written, and the share of the peak that it may use.
WRITTEN = {
    "nested": ("jax.checkpoint(step, prevent_cse=False)", "30%"),
    "passed": ("jax.checkpoint(", "30%"),
    "reduced": ("jax.checkpoint", "50%"),
    "of_model": ("jax.checkpoint", "50%"),
}


@pytest.fixture(scope="module")
def unchanged():
    return _loaded(MODEL)


def _loaded(text: str) -> types.ModuleType:
    module = sys.modules["model_of_calls"] = types.ModuleType("model_of_calls")
    exec(compile(text, "model.py", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name != "of_model" else [])
        for name in WRITTEN
    ],
)
def test_written(tmp_path: Path, unchanged: types.ModuleType, function: str) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "model.py").write_text(MODEL)
    expected, budget = WRITTEN[function]
    arguments = "model_args" if function == "of_model" else "args"
    ran = cli(
        tmp_path,
        *("plan", f"model:{function}", "--args", f"model:{arguments}", "--budget", budget),
        *("--no-compile", "--apply"),
    )
    assert ran.code == 0, ran.out + ran.err
    after = (tmp_path / "model.py").read_text()
    assert expected in after, after
    assert _gradient(_loaded(after), function) == pytest.approx(
        _gradient(unchanged, function), rel=1e-5, abs=1e-7
    )


def _gradient(model: types.ModuleType, function: str) -> np.ndarray:
    drawn = np.random.default_rng(0)
    ws, x = jax.tree.map(lambda one: drawn.normal(size=one.shape) / 8, model.args())
    if function == "of_model":
        layers = [jax.tree.map(lambda w, n=n: w[n], ws) for n in range(6)]
        loss = lambda ws, x: model.of_model(model.Model(ws, "m", True, np.arange(3)), x)  # noqa: E731
        value, found = jax.jit(jax.value_and_grad(loss))(layers, x)
    else:
        value, found = jax.jit(jax.value_and_grad(getattr(model, function)))(ws, x)
    return np.concatenate([np.ravel(leaf) for leaf in (value, *jax.tree.leaves(found))])
