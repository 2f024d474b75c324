"""What is differentiated: by what, where, and what runs inside it."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.placement.placement import derivative_rules, derivatives_in
from remat_migrate.analysis.values.values import Function, layers

HEAD = """\
from functools import partial
import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
import optax
from flax import nnx

def f(x, y=0):
    return x * x

remat = jax.checkpoint
"""


def opened(open_project: Callable[..., Project], code: str) -> tuple[Project, Module]:
    project = open_project(HEAD + code + "\n")
    return project, project.modules[project.settings.root / "m.py"]


def named(module: Module, name: str) -> ast.FunctionDef:
    return next(n for n in module.nodes if isinstance(n, ast.FunctionDef) and n.name == name)


DECORATED = [
    "@nnx.grad(argnums=0)\ndef h(x):\n  return x",
]


@pytest.mark.parametrize("code", DECORATED)
def test_decorated(open_project: Callable[..., Project], code: str) -> None:
    project, module = opened(open_project, code)
    [derivative] = derivatives_in(project, module)
    inner = {layer for value in derivative.functions for layer in layers(value)}
    assert {v.node for v in inner if isinstance(v, Function)} == {named(module, "h")}


def test_rules(open_project: Callable[..., Project]) -> None:
    code = """
@jax.custom_vjp
def a(x): return x
def a_fwd(x): return x, x
def a_bwd(r, t): return (t,)
a.defvjp(partial(a_fwd), jax.jit(a_bwd))
@jax.custom_jvp
def b(x): return x
@b.defjvp
def b_jvp(p, t): return p, t
@jax.custom_gradient
def c(x): return x, lambda t: t
"""
    project, module = opened(open_project, code)
    rules = {getattr(node, "name", "") for node in derivative_rules(project, module)}
    assert rules == {"a_fwd", "a_bwd", "b_jvp", "c"}
