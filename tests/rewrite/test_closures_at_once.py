"""Checkpoints that are called where they are applied: what is closed over, as text."""

from __future__ import annotations

import pytest
from support import findings, fixed

CODE = ("RMT101",)
HEAD = """\
import jax
import jax.numpy as jnp


def block(fn, p, x, train, scale=1.0, *, name="a"):
    return jnp.sum(fn(p, x @ p, train)) * scale


def layer(p, x, sizes):
    for n in range(sizes.n):
        x = x @ p[n]
    return x


"""
BODIES = {
    "names": (
        "def run(fn, p, x, train):\n"
        "    return jax.checkpoint(block, concrete=True)(fn, p, x, train)\n",
        "    return jax.checkpoint(lambda p, x: block(fn, p, x, train))(p, x)\n",
    ),
    "an item is read before the checkpoint traces": (
        "def run(fns, ps, x, train):\n"
        "    return jax.checkpoint(block, concrete=True)(fns[0], ps[0], x, train)\n",
        "    return jax.checkpoint(lambda p, x, fn=fns[0]: block(fn, p, x, train))(ps[0], x)\n",
    ),
    "unknown arguments of an unknown function": (
        "def run(f, sizes, p):\n"
        "    p = jnp.asarray(p)\n"
        "    return jax.checkpoint(f, concrete=True)(*sizes(), p=p)\n",
        "    return jax.checkpoint(lambda p, x=sizes(): f(*x, p=p))(p)\n",
    ),
    "keywords": (
        "def run(fn, p, x, train):\n"
        "    return jax.checkpoint(block, concrete=True)(fn, p, train=train, x=x)\n",
        "    return jax.checkpoint(lambda p, x: block(fn, p, train=train, x=x))(p, x)\n",
    ),
    "a spread dictionary is closed over": (
        "def run(fn, p, x, **options):\n"
        "    return jax.checkpoint(block, concrete=True)(fn, p, x, **options)\n",
        "    return jax.checkpoint(lambda p, x: block(fn, p, x, **options))(p, x)\n",
    ),
    "a name that is a parameter of the lambda": (
        "def run(x, q, w):\n    return jax.checkpoint(block, concrete=True)(x, q, w, q)\n",
        "    return jax.checkpoint(lambda p, x, fn=x: block(fn, p, x, q))(q, w)\n",
    ),
    "a lambda": (
        "def run(fn, p, x):\n"
        "    return jax.checkpoint(lambda f, q: f(x @ q), concrete=True)(fn, p)\n",
        "    return jax.checkpoint(lambda q, f=fn: f(x @ q))(p)\n",
    ),
    "options that stay": (
        "def run(fn, p, x, train):\n"
        "    return jax.checkpoint(block, concrete=True, prevent_cse=False)(fn, p, x, train)\n",
        "    return jax.checkpoint(lambda p, x: block(fn, p, x, train), prevent_cse=False)(p, x)\n",
    ),
    "a long line": (
        "def run(function, parameters, inputs, training):\n"
        "    return jax.checkpoint(block, concrete=True)(function, parameters, inputs, training)\n",
        "    return jax.checkpoint(lambda p, x: block(function, p, x, training))(\n"
        "        parameters, inputs\n"
        "    )\n",
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_call_is_written_directly(name: str) -> None:
    before, expected = BODIES[name]
    assert fixed(HEAD + before, select=CODE)["example.py"].endswith(expected)


def test_calls_are_not_reordered() -> None:
    """What is closed over would be evaluated before the arrays that stand before it."""
    before = (
        "def run(fns, p, rng):\n"
        "    return jax.checkpoint(block, concrete=True)(next(fns), p, next(rng), True)\n"
    )
    after = fixed(HEAD + before, select=CODE)["example.py"]
    assert "    return checkpointed_block(next(fns), p, next(rng), True)\n" in after
    assert not findings(after, select=CODE)
