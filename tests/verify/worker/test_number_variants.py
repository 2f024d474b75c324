"""Numbers that are not the defaults, so that a default in the argument's place shows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from worker_package import load_worker

unit_cases = load_worker("unit_cases")
load = load_worker("load")
make = load_worker("inputs.make")


def others(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """The cases with other numbers."""
    cases = make.make_cases(function).cases
    found = [(about, {"args": c["args"], **c["kwargs"]}) for about, c in cases]
    return [(about, given) for about, given in found if about.startswith("other values of ")]


def test_all_numbers_vary_together() -> None:
    def f(x: jax.Array, n: int, rate: float = 0.3, *, m: int = 1, flag: bool = True) -> Any:
        return x * n * rate * m

    about = "other values of n and rate and m"
    found = others(f)
    assert [name for name, _ in found] == [about, about]
    assert [(*given["args"][1:3], given["m"]) for _, given in found] == [
        (3, 0.3 * 0.6875, 4),
        (1, 2.0, 1),
    ]


def test_numbers_that_cannot_be_changed_stay() -> None:
    def f(axis: int, rate: float = 0.5) -> Any:
        return jnp.sum(jnp.ones(3), axis=axis) * rate

    found = others(f)
    assert [name for name, _ in found] == ["other values of rate"] * 2
    assert [given["args"] for _, given in found] == [(-1, 0.5 * 0.75), (-1, 2.0)]


def test_nothing_to_vary() -> None:
    assert others(lambda x, flag=True, mode="a": x * 2) == []


def test_cases_outlive_a_unit_that_donates() -> None:
    @partial(jax.jit, donate_argnums=0, static_argnums=(1, 2))
    def step(x: jax.Array, train: bool, n: int = 2) -> Any:
        return x * n if train else x

    cases = unit_cases.all_cases(load.Unit(step, None, None), []).cases
    assert {about for about, _ in cases} >= {"other values of n"}
    assert not any(case["args"][0].is_deleted() for _, case in cases)
