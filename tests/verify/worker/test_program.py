"""Programs: what is the same but for checkpoints, and what is not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import io_callback
from worker_package import load_worker

agreement = load_worker("program.agreement")
coverage = load_worker("coverage")
trace = load_worker("program.trace")

X = jax.ShapeDtypeStruct((8, 16), jnp.float32)
W = jax.ShapeDtypeStruct((16, 16), jnp.float32)
KEY = jax.ShapeDtypeStruct((2,), jnp.uint32)

Function = Callable[..., Any]


def block(x, w, train, activation="relu", epsilon=1e-6):
    h = x @ w
    if train:
        h = h * 2
    h = jax.nn.relu(h) if activation == "relu" else jnp.tanh(h)
    return h / jnp.sqrt((h**2).mean() + epsilon)


def plain(x, w):
    return block(x, w, True).sum()


def with_static_arguments(x, w):
    return jax.checkpoint(block, static_argnums=(2, 3))(x, w, True, "relu").sum()


def closing_over(x, w):
    @jax.checkpoint
    def inner(x, w):
        return block(x, w, True)

    return inner(x, w).sum()


def with_policy(x, w):
    policy = jax.checkpoint_policies.dots_saveable
    return jax.checkpoint(lambda x, w: block(x, w, True), policy=policy)(x, w).sum()


def named(x, w):
    return checkpoint_name(block(x, w, True), "block").sum()


def mixed(x, w, train):
    h = x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)
    return (jax.nn.gelu(h) if train else h).astype(jnp.float32).sum()


def logistic(body: Function, length: int = 100) -> Function:
    """Return a chaotic rollout."""
    return lambda x: jax.lax.scan(body, x, None, length=length)[0].sum()


def step(c, _):
    return 3.9 * c * (1 - c), None


def pairwise(first: bool) -> Function:
    """Return a loop in a loop, whose inner body uses the element of the outer loop if `first`."""

    def f(x):
        def outer(c, xi):
            return jax.lax.scan(lambda d, xj: (d + (xi if first else xj) * xj, None), c, x)[0], None

        return jax.lax.scan(outer, jnp.zeros(16), x)[0]

    return f


def branching(true: Function, false: Function) -> Function:
    return lambda x: jax.lax.cond(x.sum() > 0, true, false, x)


def counting(limit: int, body: Function) -> Function:
    def f(x):
        return jax.lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] + 1, body(c[1])), (0, x))

    return f


def doubling(slope: float) -> Function:
    @jax.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (x * 2, None), lambda _, g: (g * slope,))
    return f


def hosted(function: Function) -> Function:
    return lambda x: jax.pure_callback(function, x, x)


def noise(key):
    return jax.random.normal(key, (3,))


def printing(x):
    jax.debug.print("{}", x)
    return x * 2


def storing(x):
    io_callback(lambda value: None, None, jax.lax.stop_gradient(x))
    return jnp.sin(x)


RIGHT = {
    "static arguments": (plain, with_static_arguments, X, W),
    "closing form": (plain, closing_over, X, W),
    "policy": (plain, with_policy, X, W),
    "name": (plain, named, X, W),
    "jit": (plain, jax.jit(with_static_arguments), X, W),
    "gradient": (jax.grad(plain, 1), jax.grad(with_static_arguments, 1), X, W),
    "value and gradient": (jax.value_and_grad(plain), jax.value_and_grad(closing_over), X, W),
    "bfloat16": (
        lambda x, w: mixed(x, w, True),
        lambda x, w: jax.checkpoint(mixed, static_argnums=(2,))(x, w, True),
        X,
        W,
    ),
    "chaos": (logistic(step), logistic(jax.checkpoint(step, prevent_cse=False)), X),
    "gradient of a scan": (
        jax.grad(logistic(step)),
        jax.grad(logistic(jax.checkpoint(step, prevent_cse=False))),
        X,
    ),
    "vmap": (jax.vmap(logistic(step)), jax.vmap(logistic(jax.checkpoint(step))), X),
    "nested loops": (pairwise(True), jax.checkpoint(pairwise(True)), X),
    "cond": (branching(jnp.sin, jnp.cos), branching(jax.checkpoint(jnp.sin), jnp.cos), X),
    "while": (counting(3, jnp.sin), counting(3, jax.checkpoint(jnp.sin)), X),
    "custom derivative": (doubling(3.0), jax.checkpoint(doubling(3.0)), X),
    "random numbers": (noise, jax.checkpoint(noise), KEY),
    "host callback": (hosted(np.sin), jax.checkpoint(hosted(np.sin)), X),
    "print": (printing, jax.checkpoint(printing), X),
    "order": (
        lambda x: (jnp.sin(x), jnp.cos(x)),
        lambda x: tuple(reversed((jnp.cos(x), jnp.sin(x)))),
        X,
    ),
}

WRONG = {
    "flag": (plain, lambda x, w: block(x, w, False).sum(), X, W),
    "activation": (plain, lambda x, w: block(x, w, True, "tanh").sum(), X, W),
    "epsilon": (plain, lambda x, w: block(x, w, True, "relu", 1e-5).sum(), X, W),
    "swapped": (lambda x, w: w @ x, lambda x, w: x @ w, W, W),
    "clip": (lambda x: jnp.clip(x, -30, 30), lambda x: jnp.clip(x, -20, 20), X),
    "cut gradient": (plain, lambda x, w: jax.lax.stop_gradient(plain(x, w)), X, W),
    "length": (logistic(step), logistic(step, 99), X),
    "element of the outer loop": (pairwise(True), pairwise(False), X),
    "branches": (branching(jnp.sin, jnp.cos), branching(jnp.cos, jnp.sin), X),
    "condition": (counting(3, jnp.sin), counting(4, jnp.sin), X),
    "custom derivative": (doubling(3.0), doubling(2.0), X),
    "key": (noise, lambda key: noise(jax.random.split(key)[0]), KEY),
    "host callback": (hosted(np.sin), hosted(np.cos), X),
    "print": (printing, lambda x: x * 2, X),
    "order of results": (lambda x: (jnp.sin(x), x), lambda x: (x, jnp.sin(x)), X),
    "weak type": (lambda x: jnp.asarray(1.0), lambda x: jnp.float32(1.0), X),
    "dtype": (lambda x: x.sum(), lambda x: x.astype(jnp.bfloat16).sum(), X),
    "effect that checkpoints refuse": (storing, jax.checkpoint(storing), X),
}


@functools.lru_cache(None)
def traced(function: Function, *arguments: Any) -> dict[str, Any]:
    def of_list(arrays):
        return jax.tree_util.tree_leaves(function(*arrays))

    inexact = [i for i, x in enumerate(arguments) if jnp.issubdtype(x.dtype, jnp.inexact)]
    programs = trace.programs(of_list, list(arguments), inexact, lambda source: "model.py:3")
    return {"": {"result": ["array"], "programs": programs, "concrete": None}}


def agree(tmp_path, old: Function, new: Function, *arguments: Any) -> Any:
    for side, function in (("old", old), ("new", new)):
        agreement.save(str(tmp_path / side), traced(function, *arguments))
    return agreement.agreement(str(tmp_path / "old"), str(tmp_path / "new"))


@pytest.mark.parametrize("name", RIGHT)
def test_same_program(name, tmp_path):
    found = agree(tmp_path, *RIGHT[name])
    assert found == agreement.Agreement(agreement.SAME)


@pytest.mark.parametrize("name", WRONG)
def test_other_program(name, tmp_path):
    assert agree(tmp_path, *WRONG[name]).state == agreement.DIFFERS


def test_the_first_difference_has_its_place(tmp_path):
    found = agree(tmp_path, *WRONG["epsilon"])
    assert "`add float32[] 1e-05` (model.py:3), was `add float32[] 1e-06` (model.py:3)" in (
        found.detail
    )


def test_what_needs_values_cannot_be_traced(tmp_path):
    def positive(x):
        return x if x.sum() > 0 else -x

    found = agree(tmp_path, positive, jax.checkpoint(positive), X)
    assert found.state == agreement.UNKNOWN
    assert "Tracer" in found.detail


def test_numbers_are_computed_with_checkpoints_afterwards():
    function = jax.jit(with_static_arguments)
    traced(function, X, W)
    jaxpr = str(jax.make_jaxpr(function)(X, W))
    assert "remat" in jaxpr or "checkpoint" in jaxpr


def test_another_implementation_of_checkpoints(tmp_path):
    old = traced(plain, X, W)
    before = jax.config.jax_remat3 if hasattr(jax.config, "jax_remat3") else None
    if before is None:
        pytest.skip("this JAX has no jax_remat3")
    jax.config.update("jax_remat3", True)
    try:
        new = traced(lambda x, w: with_static_arguments(x, w), X, W)
    finally:
        jax.config.update("jax_remat3", before)
    agreement.save(str(tmp_path / "old"), old)
    agreement.save(str(tmp_path / "new"), new)
    assert agreement.agreement(str(tmp_path / "old"), str(tmp_path / "new")).state == "same"


def dropping(checkpoint: Function) -> Function:
    """A function that drops what its edited checkpoint returns, also in a loop."""

    def step(x: Any, _: Any = None) -> Any:
        coverage.note("f at line 1", checkpoint(x))
        return x + 1, None

    return lambda x: jax.lax.scan(step, step(x)[0], None, length=2)[0]


def block_with_constants(x: Any) -> Any:
    return x * 2, 2.0, True, jnp.float32(3), np.ones(2), 4, np.zeros(2, jax.dtypes.float0)


@pytest.mark.parametrize(
    "checkpoint",
    [
        jax.checkpoint(block_with_constants),
        jax.checkpoint(lambda x: x * 2),  # returns less
        lambda x: None,  # is not a checkpoint
    ],
)
def test_same_program_where_checkpoints_are_dropped(checkpoint, tmp_path):
    found = agree(tmp_path, dropping(block_with_constants), dropping(checkpoint), X)
    assert found == agreement.Agreement(agreement.SAME)


@pytest.mark.parametrize("checkpoint", [lambda x: (x * 3, *block_with_constants(x)[1:])])
def test_other_program_where_checkpoints_are_dropped(checkpoint, tmp_path):
    new = dropping(jax.checkpoint(checkpoint))
    found = agree(tmp_path, dropping(block_with_constants), new, X)
    assert found.is_dropped
    assert found.detail == "the checkpoint of f at line 1 returns other values"


def scheduled(steps: int) -> Function:
    def loss(x):
        schedule = jnp.cos(jnp.arange(steps) / steps)
        return x * schedule[0] if jnp.greater(steps, 2) else x

    return loss


def test_constants_are_computed_where_python_needs_them():
    program = trace.programs(scheduled(4), [X], [0], lambda source: "")["forward"]
    assert program["is_concrete"]
    with jax.ensure_compile_time_eval():
        found = [
            trace.programs(lambda x, f=f: [f(x[0])], [X], [0], lambda source: "")
            for f in (scheduled(4), lambda x: x * jnp.cos(jnp.arange(4) / 4)[0], scheduled(2))
        ]
    outputs = [one["forward"]["outputs"] for one in found]
    assert outputs[0] == outputs[1] != outputs[2]
