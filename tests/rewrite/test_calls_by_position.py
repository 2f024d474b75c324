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


CLOSED = [
    "fast = fast_jit(cell)",
    "def make(f):\n    return jax.jit(f, static_argnums=(2,))\n\n\nfast = make(cell)",
    "fast = last_gradient(cell)",
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


WRAPPER = """\
import jax


def {name}(f, {star}concrete=False, prevent_cse=True):
    return jax.checkpoint(f, concrete=concrete, prevent_cse=prevent_cse)
"""


@pytest.mark.parametrize("star", ["", "*, "])
def test_a_public_parameter_is_not_removed_by_a_safe_fix(star: str) -> None:
    code = WRAPPER.format(name="remat", star=star)
    [found] = findings(code, select=CODE)
    assert found.fix is not None
    assert found.fix.safety == "unsafe"
    assert "`remat` is public" in found.reason
    assert fixed(code, select=CODE)["example.py"] == code
    assert "concrete" not in fixed(code, select=CODE, unsafe=True)["example.py"]


def test_a_private_parameter_is_removed() -> None:
    code = WRAPPER.format(name="_remat", star="")
    assert "concrete" not in fixed(code, select=CODE)["example.py"]


METHOD = """\
import jax
from functools import partial


class Layer(Base):
    @partial(jax.checkpoint, concrete=True)
    {decorator}
    def apply(self, x, *, train=True):
        y = {value}
        return 2 * x if train else y
"""


@pytest.mark.parametrize(
    ("decorator", "value", "reason"),
    [
        ("# A comment.", "super().apply(x)", "its body calls `super()`"),
        ("# A comment.", "locals()['x']", "its body calls `locals()`"),
        ("@jax.named_scope('a')", "x", "a decorator is below the checkpoint"),
    ],
)
def test_bodies_that_cannot_move(decorator: str, value: str, reason: str) -> None:
    [found] = findings(METHOD.format(decorator=decorator, value=value), select=CODE)
    assert found.fix is not None
    assert found.fix.safety == "manual"
    assert reason in found.reason


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("jax.nn.one_hot", "`jax.nn.one_hot` may need the values of some arguments"),
        ("table['block']", "`table['block']` cannot be resolved"),
    ],
)
def test_reason_where_the_target_is_no_function_of_the_project(target: str, reason: str) -> None:
    [found] = findings(f"import jax\n\nf = jax.checkpoint({target}, concrete=True)\n", select=CODE)
    assert found.reason.startswith(reason)
