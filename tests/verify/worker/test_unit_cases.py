"""Cases rewritten to pass arguments by position, as static arguments must be."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from worker_package import load_worker

unit_cases = load_worker("unit_cases")


def unit(params: Any, x: Any, train: bool = False, *, scale: float = 1.0) -> Any:
    return params, x, train, scale


def variadic(x: Any, *rest: Any, **options: Any) -> Any:
    return x, rest, options


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "expected"),
    [
        (unit, (1, 2), {}, ((1, 2, False), {"scale": 1.0})),
        (unit, (1,), {"train": True, "x": 2}, ((1, 2, True), {"scale": 1.0})),
        (unit, (1, 2, True), {"scale": 3.0}, ((1, 2, True), {"scale": 3.0})),
        (variadic, (1, 2), {"a": 3}, ((1, 2), {"a": 3})),
        # Invalid calls are left to fail when they are made.
        (unit, (1,), {}, ((1,), {})),
        (dict.fromkeys, (1,), {"x": 2}, ((1,), {"x": 2})),
    ],
)
def test_by_position(function: Any, args: Any, kwargs: Any, expected: Any) -> None:
    case = {"args": args, "kwargs": kwargs, "context": {"library": "haiku"}}
    found = unit_cases.by_position(function, case)
    assert (found["args"], found["kwargs"]) == expected
    assert found["context"] == {"library": "haiku"}
    assert (case["args"], case["kwargs"]) == (args, kwargs)


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "expected"),
    [
        (unit, (1, 2, True), {}, ((1, 2), {"train": True})),
        (unit, (1, 2), {"scale": 3.0}, ((1, 2), {"scale": 3.0})),
        (variadic, (1, 2), {"a": 3}, ((1, 2), {"a": 3})),
        (lambda a=0, /, b=1: a, (1, 2), {}, ((1,), {"b": 2})),
        (lambda a=0, *b: a, (1, 2), {}, ((1, 2), {})),
    ],
)
def test_by_name(function: Any, args: Any, kwargs: Any, expected: Any) -> None:
    found = unit_cases.by_name(function, {"args": args, "kwargs": kwargs})
    assert (found["args"], found["kwargs"]) == expected


def wrapped(fn: Any, enabled: bool) -> Any:
    return functools.wraps(fn)(lambda *args: fn(*args)) if enabled else fn


def scaled_by(scale: float) -> Any:
    return lambda x: x * scale


@pytest.mark.parametrize(("function", "is_called"), [(wrapped, False), (scaled_by, True)])
def test_a_made_up_function_that_comes_back_is_not_called(function: Any, is_called: bool) -> None:
    unit = load_worker("load").Unit(function, None, None)
    made = unit_cases.all_cases(unit, [])
    assert made.cases
    assert any("then" in case for _, case in made.cases) == is_called
