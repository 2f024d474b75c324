"""Loops: their bodies, and whether they are loops to the compiler."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from remat_migrate.analysis import Project
from remat_migrate.analysis.placement.placement import placement_of
from remat_migrate.analysis.placement.transforms import LoopUse
from remat_migrate.analysis.values.callees import layers
from remat_migrate.analysis.values.values import Function

HEAD = """\
import functools
import flax.linen as nn
import haiku as hk
import jax
from jax import lax

def step(c, x):
    return c, x

remat = jax.checkpoint
"""


def loops(project: Project) -> list[LoopUse]:
    return list(
        placement_of(project).transforms.loops(project.modules[project.settings.root / "m.py"])
    )


FOUND = [
    ("lax.scan(step, 0, xs)", "jax.lax.scan", "yes"),
    ("lax.scan(step, 0, xs, unroll=1)", "jax.lax.scan", "yes"),
    ("lax.scan(step, 0, xs, unroll=3)", "jax.lax.scan", "no"),
    ("lax.scan(step, 0, xs, unroll=True)", "jax.lax.scan", "no"),
    ("lax.scan(step, 0, xs, unroll=False)", "jax.lax.scan", "yes"),
    ("lax.scan(step, 0, xs, unroll=n)", "jax.lax.scan", "unclear"),
    ("lax.scan(step, 0, None, 1)", "jax.lax.scan", "no"),
    ("lax.scan(step, 0, None, length=7)", "jax.lax.scan", "yes"),
    ("lax.scan(step, 0, xs, *more)", "jax.lax.scan", "unclear"),
    ("lax.map(step, xs)", "jax.lax.map", "yes"),
    ("lax.fori_loop(0, n, step, 0)", "jax.lax.fori_loop", "yes"),
    ("lax.fori_loop(2, 3, step, 0)", "jax.lax.fori_loop", "no"),
    ("lax.while_loop(print, step, 0)", "jax.lax.while_loop", "yes"),
    ("lax.associative_scan(step, xs)", "jax.lax.associative_scan", "no"),
    ("hk.scan(step, 0, xs)", "haiku.scan", "yes"),
    ("hk.experimental.layer_stack(4)(step)", "haiku.layer_stack", "yes"),
    ("nn.scan(step, length=2)", "flax.linen.scan", "yes"),
    ("functools.partial(lax.scan, step)", "jax.lax.scan", "yes"),
    ("functools.partial(lax.scan, unroll=2)(step, 0, xs)", "jax.lax.scan", "no"),
    ("lax.scan(functools.partial(step, 1), xs)", "jax.lax.scan", "yes"),
    ("lax.scan(jax.jit(step), 0, xs)", "jax.lax.scan", "yes"),
]  # fmt: skip


def body_names(loop: LoopUse) -> list[str]:
    """The names of the functions that are the loop's body, whatever wraps them."""
    inner = (layer for body in loop.functions for layer in layers(body))
    return [layer.node.name for layer in inner if isinstance(layer, Function)]


@pytest.mark.parametrize(("code", "name", "real"), FOUND)
def test_loop(open_project: Callable[..., Project], code: str, name: str, real: str) -> None:
    [loop] = loops(open_project(HEAD + f"y = {code}\n"))
    assert (loop.transform.name, loop.compiled) == (name, real)
    assert body_names(loop) == ["step"]


def test_decorated(open_project: Callable[..., Project]) -> None:
    code = "@functools.partial(nn.scan, length=3)\ndef body(mdl, x):\n    return x, None\n"
    [loop] = loops(open_project(HEAD + code))
    assert body_names(loop) == ["body"]


NONE = [
    "y = map(step, xs)",
    "y = lax.cond(c, step, step, 0)",
    "y = jax.vmap(step)(xs)",
    "from other import scan\ny = scan(step, 0, xs)",
    "y = table.scan(step)",
]


@pytest.mark.parametrize("code", NONE)
def test_no_loop(open_project: Callable[..., Project], code: str) -> None:
    assert loops(open_project(HEAD + code + "\n")) == []
