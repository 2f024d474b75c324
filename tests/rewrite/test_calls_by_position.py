"""Calls that pass one more argument by position, and transformations that they go through."""

from __future__ import annotations

import pytest
from support import findings, fixed

CODE = ("RMT101",)
HEAD = """\
from functools import partial

import equinox as eqx
import jax

STATIC = (2,)
fast_jit = partial(jax.jit, static_argnums=(2,))
last_gradient = partial(jax.grad, argnums=-2)


@partial(jax.checkpoint, concrete=True)
def cell(w, x, train, act="relu"):
    if train:
        x = x * w
    return x if act == "relu" else -x


"""

PASSED_ON = [
    "fast = jax.grad(cell)",
    "fast = jax.grad(cell, argnums=1)",
    "fast = jax.value_and_grad(cell, (0, 1))",
    "fast = eqx.filter_jit(cell)",
]


@pytest.mark.parametrize("alias", PASSED_ON)
def test_what_passes_arguments_on_gets_one_more(alias: str) -> None:
    code = f"{HEAD}{alias}\n\n\ndef run(w, x):\n    return fast(w, x, True)\n"
    after = fixed(code, select=CODE)["example.py"]
    assert alias in after
    assert after.endswith('    return fast(w, x, True, "relu")\n')


CLOSED = [
    "fast = fast_jit(cell)",
    "fast = jax.jit(cell, static_argnums=(2,))",
    "fast = jax.jit(cell, static_argnums=STATIC)",
    'fast = jax.jit(cell, static_argnames="train")',
    "fast = jax.jit(cell, **{'static_argnums': (2,)})",
    "fast, other = [jax.jit(f, static_argnums=(2,)) for f in (cell, print)]",
    "def make(f):\n    return jax.jit(f, static_argnums=(2,))\n\n\nfast = make(cell)",
    "fast = jax.vmap(cell, in_axes=(None, 0, None))",
    "fast = jax.pmap(cell, static_broadcasted_argnums=(2,))",
    "fast = jax.jit(jax.vmap(cell, in_axes=(None, 0, None)), static_argnums=(2,))",
    "fast = jax.grad(cell, argnums=-2)",
    "fast = last_gradient(cell)",
    "fast = jax.shard_map(cell, mesh=mesh, in_specs=(P(), P(), P()), out_specs=P())",
    "fast = jax.custom_gradient(cell)",
    "fast = unknown(cell)",
]


@pytest.mark.parametrize("alias", CLOSED)
def test_what_may_count_arguments_keeps_its_calls(alias: str) -> None:
    code = f"{HEAD}{alias}\n\n\ndef run(w, x):\n    return fast(w, x, True)\n"
    after = fixed(code, select=CODE)["example.py"]
    assert "def checkpointed_cell(w, x):" in after
    assert alias in after
    assert after.endswith("    return fast(w, x, True)\n")


@pytest.mark.parametrize("function", ["vjp", "linearize", "eval_shape"])
def test_functions_that_trace_all_their_arguments(function: str) -> None:
    code = HEAD.replace("train,", "train=True,") + f"out = jax.{function}(cell, w, x)\n"
    after = fixed(code, select=CODE)["example.py"]
    assert "def checkpointed_cell(w, x):" in after
    assert after.endswith(f"out = jax.{function}(cell, w, x)\n")


LAYOUTS = {
    "cell(\n    w,\n    x,  # data\n    True,  # training\n)": (
        "cell(\n    w,\n    x,  # data\n    True,  # training\n    'relu',\n)"
    ),
    "cell(\n    w,\n    x,\n    train=True  # training\n)": (
        "cell(\n    w,\n    x,\n    True,  # training\n    'relu'\n)"
    ),
    "cell(\n    w, x, True\n)": "cell(\n    w, x, True, 'relu'\n)",
    "cell(w, x, (1 > 2))": "cell(w, x, (1 > 2), 'relu')",
    "cell(w, x, True,)": "cell(w, x, True, 'relu',)",
}


@pytest.mark.parametrize("call", LAYOUTS)
def test_inserted_text(call: str) -> None:
    """One argument a line where the call has it so, and the quotes of the file."""
    head = HEAD.replace('"', "'")
    after = fixed(f"{head}y = {call}\n", select=CODE)["example.py"]
    assert after.endswith(f"y = {LAYOUTS[call]}\n")


WRAPPER = """\
import jax


def {name}(f, {star}concrete=False, prevent_cse=True):
    return jax.checkpoint(f, concrete=concrete, prevent_cse=prevent_cse)
{end}"""


@pytest.mark.parametrize("star", ["", "*, "])
def test_a_public_parameter_is_not_removed_by_a_safe_fix(star: str) -> None:
    code = WRAPPER.format(name="remat", star=star, end="")
    [found] = findings(code, select=CODE)
    assert found.fix is not None
    assert found.fix.safety == "unsafe"
    assert "`remat` is public" in found.reason
    assert fixed(code, select=CODE)["example.py"] == code
    assert "concrete" not in fixed(code, select=CODE, unsafe=True)["example.py"]


@pytest.mark.parametrize(
    ("name", "end"),
    [("_remat", ""), ("remat", '\n\n__all__ = ["other"]\n')],
)
def test_a_private_parameter_is_removed(name: str, end: str) -> None:
    code = WRAPPER.format(name=name, star="", end=end)
    assert "concrete" not in fixed(code, select=CODE)["example.py"]
