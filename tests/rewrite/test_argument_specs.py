"""Calls through transformed aliases: what becomes of options that count arguments."""

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


@partial(jax.checkpoint, concrete=True)
def cell(w, x, train, act="relu"):
    if train:
        x = x * w
    return x if act == "relu" else -x


"""

UPDATED = {
    # The alias and a call of it, before and after.
    "jit": (
        "fast = jax.jit(cell, static_argnums=(2,))",
        "fast = jax.jit(cell, static_argnums=(2, 3))",
    ),
    "jit of a number": (
        "fast = jax.jit(cell, static_argnums=2)",
        "fast = jax.jit(cell, static_argnums=(2, 3))",
    ),
    "jit of a list": (
        "fast = jax.jit(cell, static_argnums=[2])",
        "fast = jax.jit(cell, static_argnums=[2, 3])",
    ),
    "jit of a name": (
        'fast = jax.jit(cell, static_argnames="train")',
        'fast = jax.jit(cell, static_argnames=("train", "act"))',
    ),
    "jit that names it": (
        'fast = jax.jit(cell, static_argnames=("train", "act"))',
        'fast = jax.jit(cell, static_argnames=("train", "act"))',
    ),
    "vmap": (
        "fast = jax.vmap(cell, in_axes=(None, 0, None))",
        "fast = jax.vmap(cell, in_axes=(None, 0, None, None))",
    ),
    "vmap by position": (
        "fast = jax.vmap(cell, (None, 0, None))",
        "fast = jax.vmap(cell, (None, 0, None, None))",
    ),
    "pmap": (
        "fast = jax.pmap(cell, static_broadcasted_argnums=(2,))",
        "fast = jax.pmap(cell, static_broadcasted_argnums=(2, 3))",
    ),
    "nested": (
        "fast = jax.jit(jax.vmap(cell, in_axes=(None, 0, None)), static_argnums=(2,))",
        "fast = jax.jit(jax.vmap(cell, in_axes=(None, 0, None, None)), static_argnums=(2, 3))",
    ),
    "grad": ("fast = jax.grad(cell, argnums=1)", "fast = jax.grad(cell, argnums=1)"),
    "filter_jit": ("fast = eqx.filter_jit(cell)", "fast = eqx.filter_jit(cell)"),
}


@pytest.mark.parametrize("form", UPDATED)
def test_the_options_are_updated(form: str) -> None:
    alias, expected = UPDATED[form]
    code = f"{HEAD}{alias}\n\n\ndef run(w, x):\n    return fast(w, x, True)\n"
    after = fixed(code, select=CODE)["example.py"]
    assert expected in after
    assert after.endswith('    return fast(w, x, True, "relu")\n')


def test_an_argument_that_calls_pass_in_different_ways_is_added_once() -> None:
    alias = "fast = jax.jit(cell, static_argnums=(2,))"
    calls = '    return fast(w, x, True) + fast(w, x, True, act="tanh")\n'
    code = f"{HEAD}{alias}\n\n\ndef run(w, x):\n{calls}"
    after = fixed(code, select=CODE)["example.py"]
    assert "fast = jax.jit(cell, static_argnums=(2, 3))" in after
    assert 'fast(w, x, True, "relu") + fast(w, x, True, "tanh")' in after


CLOSED = [
    "fast = fast_jit(cell)",
    "fast = jax.jit(cell, static_argnums=STATIC)",
    "fast = jax.jit(cell, static_argnums=-1)",
    "fast = jax.jit(cell, **{'static_argnums': (2,)})",
    "fast, other = [jax.jit(f, static_argnums=(2,)) for f in (cell, print)]",
    "def make(f):\n    return jax.jit(f, static_argnums=(2,))\n\n\nfast = make(cell)",
    "fast = jax.vmap(cell, axis_size=4)",
    "fast = jax.vmap(cell, in_axes=0)",
    "fast = jax.grad(cell, argnums=-2)",
    "fast = jax.shard_map(cell, mesh=mesh, in_specs=(P(), P(), P()), out_specs=P())",
    "fast = jax.custom_gradient(cell)",
    "fast = unknown(cell)",
]


@pytest.mark.parametrize("alias", CLOSED)
def test_what_cannot_be_updated_is_closed_over(alias: str) -> None:
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


def test_stacked_decorators_count_self() -> None:
    code = """\
from functools import partial

import equinox as eqx
import jax


class Trainer(eqx.Module):
    @partial(jax.jit, static_argnums=(2,))
    @partial(jax.checkpoint, concrete=True)
    def step(self, x, train, mode="one"):
        return x if train and mode == "one" else -x


def run(x):
    return Trainer().step(x, True)
"""
    after = fixed(code, select=CODE)["example.py"]
    assert "    @partial(jax.jit, static_argnums=(2, 3))\n" in after
    assert after.endswith('    return Trainer().step(x, True, "one")\n')


def test_static_calls_through_one_alias_change_together() -> None:
    code = (
        "import jax\n\n\ndef f(x, n=1):\n    return x * n\n\n\n"
        "fast = jax.vmap(jax.checkpoint(f, static_argnums=(1,)), in_axes=(0,))\n"
        "y = fast(a) + fast(b)\n"
    )
    after = fixed(code, select=("RMT203",))["example.py"]
    assert "in_axes=(0, None))\ny = fast(a, 1) + fast(b, 1)\n" in after


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


def test_quotes_of_the_file() -> None:
    files = {
        "cells.py": HEAD.replace('"', "'"),
        "train.py": 'from cells import cell\n\nNAME = "train"\ny = cell(w, x, True)\n',
    }
    assert fixed(files, select=CODE)["train.py"].endswith('y = cell(w, x, True, "relu")\n')


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
    [("_remat", ""), ("remat", '\n\n__all__ = ["other"]\n'),
     ("remat", '\n\nif __name__ == "__main__":\n    remat(print)\n')],
)  # fmt: skip
def test_a_private_parameter_is_removed(name: str, end: str) -> None:
    code = WRAPPER.format(name=name, star="", end=end)
    assert "concrete" not in fixed(code, select=CODE)["example.py"]
