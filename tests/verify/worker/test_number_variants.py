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
number_variants = load_worker("inputs.number_variants")


def others(function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[str, Any]]:
    """The cases that differ from one."""
    found = number_variants.vary_numbers(
        function, lambda: {"args": args, "kwargs": kwargs, "context": None}
    )
    return [(about, (case["args"], case["kwargs"])) for about, case in found]


def test_all_numbers_vary_together() -> None:
    def f(x: Any, n: int, rate: float = 0.1, *, m: int = 1, flag: bool = True) -> Any:
        return x

    assert others(f, 1j, 1) == [
        ("other values of n and rate and m", ((1j, 2), {"rate": 0.1 * 0.6875, "m": 4})),
        ("other values of n and rate and m", ((1j, 1), {"rate": 2.0, "m": 1})),
    ]


def test_numbers_that_cannot_be_changed_stay() -> None:
    def f(axis: int, rate: float = 0.5) -> Any:
        return jnp.sum(jnp.ones(3), axis=axis) * rate

    about = "other values of rate"
    assert others(f, 0) == [(about, ((0,), {"rate": rate})) for rate in (0.5 * 0.6875, 2.0)]


def test_nothing_to_vary() -> None:
    assert others(lambda x, flag=True, mode="a": x, jnp.ones(2)) == []
    assert others(lambda *args: args, 2, 3) == []


def test_cases_outlive_a_unit_that_donates() -> None:
    @partial(jax.jit, donate_argnums=0, static_argnums=(1, 2))
    def step(x: jax.Array, train: bool, n: int = 2) -> Any:
        return x * n if train else x

    cases = unit_cases.all_cases(load.Unit(step, None, None), []).cases
    assert {about for about, _ in cases} >= {"other values of n"}
    assert not any(case["args"][0].is_deleted() for _, case in cases)
