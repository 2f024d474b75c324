"""Loops: their bodies, and whether they are loops to the compiler."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from remat_migrate.analysis import Project
from remat_migrate.analysis.placement.placement import LoopUse, loops_in
from remat_migrate.analysis.values.values import Function, layers

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
    return loops_in(project, project.modules[project.settings.root / "m.py"])


FOUND = [
    ("lax.scan(step, 0, xs, unroll=True)", "jax.lax.scan", "no"),
    ("lax.scan(step, 0, xs, *more)", "jax.lax.scan", "unclear"),
    ("lax.fori_loop(2, 3, step, 0)", "jax.lax.fori_loop", "no"),
    ("lax.associative_scan(step, xs)", "jax.lax.associative_scan", "no"),
]  # fmt: skip


def body_names(loop: LoopUse) -> list[str]:
    """The names of the functions that are the loop's body, whatever wraps them."""
    inner = (layer for body in loop.functions for layer in layers(body))
    return [layer.node.name for layer in inner if isinstance(layer, Function)]


@pytest.mark.parametrize(("code", "name", "real"), FOUND)
def test_loop(open_project: Callable[..., Project], code: str, name: str, real: str) -> None:
    project = open_project(HEAD + f"y = {code}\n")
    [loop] = loops(project)
    assert (loop.transform.name, loop.compiles_to_loop(project)) == (name, real)
    assert body_names(loop) == ["step"]
