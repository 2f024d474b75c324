"""Arguments that JAX cannot trace: the function calls them, a method of them, or unknown code."""

from __future__ import annotations

import pytest
from support import analysed

from remat_migrate.analysis.sites.find_sites import sites_of
from remat_migrate.analysis.statics.required_arguments import find_statics

HEAD = """\
import functools
from typing import Callable, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp


class Policy:
    def cast(self, x):
        return x.astype(jnp.float32)


class Pair(NamedTuple):
    init: Callable
    apply: Callable


class Linear(eqx.Module):
    weight: jax.Array
    size: int = eqx.field(static=True)

    def __call__(self, x):
        return self.weight @ x


class Gated(eqx.Module):
    weight: jax.Array
    inference: bool

    def __call__(self, x):
        return self.weight @ x


def apply(h, p, x):
    return h(p @ x)


def chain(h, p, x):
    return apply(h, p, x)


def cast(h, x):
    return h.cast(x)


"""


def required(body: str, call: str = "", parameters: str = "h, p, x") -> set[str]:
    """Return the parameters of a checkpointed function that must be concrete."""
    text = f"{HEAD}def f({parameters}):\n    return {body}\n\n\ng = jax.checkpoint(f)\n"
    if call:
        text += f"\n\ndef run(h, p, x):\n    return {call}\n"
    project = analysed(text).project
    (site,) = sites_of(project)
    statics = find_statics(project, site)
    assert statics.obstacle is None, statics.obstacle
    return {r.name for r in statics.required}


USED_AS_OBJECTS = [
    "h(p @ x)",
    "h.cast(p @ x)",
    "h.policy.cast(p @ x)",
    "h.update(p, x)[0] + p @ x",
    'h["act"](p @ x)',
    "h[0](p @ x)",
    'h.get("act")(p @ x)',
    "jax.vmap(h)(p @ x)",
    "jax.grad(lambda y: h(y))(p @ x)",
    "functools.partial(h, p)(p @ x)",
    "apply(h, p, x)",
    "chain(h=h, p=p, x=x)",
    "cast(h, p @ x)",
    "[k(p @ x) for k in h]",
    "[k(p @ x) for k, _ in zip(h, range(2))]",
    "(h or jnp.sin)(p @ x)",
    "h(p @ x) if callable(h) else p @ x",
    'h.upper() == "A" and p @ x',
]
USED_AS_DATA = [
    "h.sum() + p @ x",
    "h.at[0].set(1.0) + p @ x",
    'h["w"] @ p @ x',
    "sum(v for k, v in h.items()) + p @ x",
    "jax.vjp(jnp.sin, h)[1](p @ x)",
    "h._replace(x=1) + p @ x",
    "sum(jax.vmap(lambda q: k(q))(p @ x) for k in (jnp.sin, jnp.cos)) + h",
]


@pytest.mark.parametrize("body", USED_AS_OBJECTS)
@pytest.mark.parametrize("call", ["", "g(h, p, x)", "g(h=h, p=p, x=x)"])
def test_objects_are_not_traced(body: str, call: str) -> None:
    assert required(body, call) == {"h"}


@pytest.mark.parametrize("body", USED_AS_DATA)
def test_data_is_traced(body: str) -> None:
    assert required(body, "g(h, p, x)") == set()


@pytest.mark.parametrize(
    ("parameters", "passed", "expected"),
    [
        ("h, p, x", "Linear(p, 3)", {"h"}),
        ("h, p, x", "Gated(p, True)", {"h"}),
        ("h, p, x", "Pair(jnp.sin, jnp.cos)", {"h"}),
        ("h: Policy, p, x", "h", {"h"}),
        ("p, x, h=None", None, set()),
    ],
)
def test_calls_show_what_is_passed(parameters: str, passed: str | None, expected: set[str]) -> None:
    body = "h.apply(p @ x)" if "Pair" in str(passed) else "h(p @ x)"
    call = "g(p, x)" if passed is None else f"g(h={passed}, p=p, x=x)"
    assert required(body, call, parameters) == expected


def test_options_passed_to_unknown_code_are_not_traced() -> None:
    """The same holds next to other needed arguments; an argument used in arithmetic is data."""
    assert required("h(p, p @ x, train)", "", "h, p, x, train") == {"h", "train"}
    assert required("h(p, x, train)", 'g(h, p, batch["x"], t)', "h, p, x, train") == {
        "h",
        "p",
        "train",
    }
