"""Policies as choices of the planner: values saved by name."""

from __future__ import annotations

import numpy as np
import pytest
from measuring import run

jax = pytest.importorskip("jax")

MODEL = """\
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name


def block(p, x):
    h = x @ p["up"]
    y = jnp.tanh(h) @ p["mid"]
    z = jnp.cos(y) * jnp.exp(-y) * jnp.sin(y)
    return x + z @ p["down"]


def loss(params, x):
    for p in params:
        x = block(p, x)
    return jnp.mean(x**2)


def named_block(p, x):
    h = x @ p["up"]
    y = checkpoint_name(jnp.tanh(h) @ p["mid"], "block_y")
    z = jnp.cos(y) * jnp.exp(-y) * jnp.sin(y)
    return x + z @ p["down"]


def named(params, x):
    policy = jax.checkpoint_policies.save_only_these_names("block_y")
    for p in params:
        x = jax.checkpoint(named_block, policy=policy)(p, x)
    return jnp.mean(x**2)


def every(params, x):
    for p in params:
        x = jax.checkpoint(named_block)(p, x)
    return jnp.mean(x**2)


def unlike(p, x):
    y = jnp.sin(x) * jnp.cos(x)
    if x.shape[0] > 1024:
        y, x = y[::2], x[::2]
    return x + jnp.tanh(y @ p["square"])


def pyramid(params, x):
    for p in params:
        x = unlike(p, x)
    return jnp.mean(x**2)


def args():
    shapes = {"up": (64, 256), "mid": (256, 32), "down": (32, 64), "square": (64, 64)}
    params = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}
    return [params] * 6, jax.ShapeDtypeStruct((4096, 64), jnp.float32)
"""
ASSIGNED = 8


def test_values_saved_by_name(project):
    plan = run(project, "plan", "loss", "--budget", "32%", "--no-compile")
    [value] = plan["values"]
    assert (value["name"], value["line"]) == ("block_y", ASSIGNED)
    assert {stage["policy"] for stage in plan["stages"]} == {'save_only_these_names("block_y")'}
    written = run(project, "measure", "named")
    bare = plan["without_checkpoints"]["flops"]
    assert plan["measured"]["flops"] - bare <= written["flops"] - bare
    assert plan["measured"]["peak_bytes"] == pytest.approx(written["peak_bytes"], rel=0.05)
    every = run(project, "measure", "every")
    assert written["flops"] < every["flops"]


def test_named_values_keep_values_and_gradients(project, monkeypatch):
    monkeypatch.syspath_prepend(project)
    import model

    draw = np.random.default_rng(0).standard_normal
    params, _ = model.args()
    params = [
        {name: draw(each.shape, np.float32) / 8 for name, each in one.items()} for one in params
    ]
    x = draw((16, 64), np.float32)
    functions = model.loss, model.named
    plain, named = (jax.jit(jax.value_and_grad(one))(params, x) for one in functions)
    for one, other in zip(jax.tree.leaves(plain), jax.tree.leaves(named), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_iterations_of_unlike_blocks(project):
    plan = run(project, "plan", "pyramid", "--budget", "60%", "--no-compile")
    assert plan["met"]
    assert {stage["times"] for stage in plan["stages"]} == {6}
