"""Special cases of the rules about the placement of checkpoints."""

from __future__ import annotations

from remat_migrate.rule import Example

WRONG: dict[str, list[Example]] = {
    "RMT301": [
        Example(
            """\
from functools import partial

import jax


def step(model, weights, x):
    @partial(jax.value_and_grad, has_aux=True)
    @jax.checkpoint
    def loss(weights):
        return model(weights, x).sum(), {}

    return loss(weights)
""",
        ),
        Example(
            """\
import jax
import jax.numpy as jnp


def step(model, weights, x, y):
    model = jax.checkpoint(model)

    def loss(weights):
        return jnp.mean((model(weights, x) - y) ** 2)

    return jax.grad(loss)(weights)
""",
        ),
    ],
    "RMT304": [
        Example(
            """\
import jax


def run(layer, x, weights, remat):
    def body(x, w):
        return layer(x, w), None

    if remat:
        body = jax.checkpoint(body)
    return jax.lax.scan(body, x, weights)
""",
            """\
import jax


def run(layer, x, weights, remat):
    def body(x, w):
        return layer(x, w), None

    if remat:
        body = jax.checkpoint(body, prevent_cse=False)
    return jax.lax.scan(body, x, weights)
""",
        ),
    ],
    "RMT305": [
        Example(
            """\
import jax


def step(first, second, x):
    @jax.grad
    @jax.checkpoint
    def loss(x):
        return jax.checkpoint(second)(jax.checkpoint(first)(x)).sum()

    return loss(x)
""",
            """\
import jax


def step(first, second, x):
    @jax.grad
    def loss(x):
        return jax.checkpoint(second)(jax.checkpoint(first)(x)).sum()

    return loss(x)
""",
        ),
    ],
}

RIGHT: dict[str, list[Example]] = {
    "RMT301": [
        Example(
            """\
import jax


def curvature(f):
    return jax.grad(jax.grad(jax.checkpoint(f)))
""",
        ),
    ],
    "RMT302": [
        Example(
            """\
import jax
import jax.numpy as jnp


def layer(x, w):
    return jnp.tanh(x @ w)


def head(x, w):
    return jax.nn.log_softmax(x @ w)


def step(weights, x):
    last = jax.checkpoint(head)

    def loss(weights):
        return jnp.mean(last(layer(x, weights[0]), weights[1]))

    return jax.grad(loss)(weights)
""",
        ),
    ],
    "RMT304": [
        Example(
            """\
import jax


def run(layer, x, weights, unroll):
    return jax.lax.scan(jax.checkpoint(layer), x, weights, unroll=unroll)
""",
        ),
    ],
    "RMT306": [
        Example(
            """\
import jax


def step(layer, weights, x):
    layer = jax.checkpoint(layer, prevent_cse=False)
    def loss(x):
        return jax.lax.fori_loop(0, 8, lambda i, x: layer(weights[i], x), x).sum()

    return jax.grad(loss)(x)
""",
        ),
    ],
}
