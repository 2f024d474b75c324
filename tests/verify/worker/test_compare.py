"""Results that `evaluate` wrote, compared: what is a difference, and what is rounding."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worker_package import load_worker

evaluate = load_worker("comparison.evaluate")
compare = load_worker("comparison.compare")

ONES = np.ones(3, np.float32)
KEY = jax.random.key(3)

Comparing = Callable[..., Any]


@pytest.fixture
def compared(tmp_path: Path) -> Comparing:
    """Compares two functions of the same arguments, as two sides of a migration."""
    numbers = itertools.count()

    def run(before: Any, after: Any, *args: Any, tolerances: Mapping[str, float] = {}) -> Any:
        folders = []
        for unit in (before, after):
            folders.append(str(tmp_path / str(next(numbers))))
            evaluate.evaluate(unit, {"args": args, "kwargs": {}, "context": None}, folders[-1])
        return compare.compare(*folders, dict(tolerances))

    return run


def value(result: Any) -> Callable[[], Any]:
    """A function that returns a value, whatever kind it is of."""
    return lambda: result


def fail(message: str) -> Any:
    raise ValueError(message)


ALIKE = {
    "numbers": (1, 1),
    "NaN": (np.array([np.nan, 1.0]), np.array([np.nan, 1.0])),
    "infinities": (np.array([np.inf, -np.inf, 1.0]), np.array([np.inf, -np.inf, 1.0])),
    "strings": ({"a": "x"}, {"a": "x"}),
    "nothing": (None, None),
    "an empty array": (np.zeros((0, 3)), np.zeros((0, 3))),
    "keys": (KEY, jax.random.key(3)),
    "a number and its array": (2.5, jnp.asarray(2.5)),
    "a NumPy number and its array": (np.float32(2.5), jnp.float32(2.5)),
    "rounding": (np.float32([1.0, 1e-3]), np.float32([1.0, 1e-3 + 5e-6])),
    "rounding of halves": (jnp.bfloat16(1.0), jnp.bfloat16(1.0078125)),
    "rounding of complex numbers": (np.complex64(1 + 1j), np.complex64(1 + 1.000002j)),
    "objects at two places in memory": (object(), object()),
}
UNLIKE = {
    "a function for a number": (1, jnp.sin, "is a function on only"),
    "a tuple and a list": ((ONES,), [ONES], "the structure is"),
    "a name": ({"a": 1, "b": 2}, {"a": 1, "c": 2}, "the structure is"),
    "one more": ((1, 2), (1, 2, 3), "the structure is"),
    "nothing any more": (ONES, None, "the structure is"),
    "a shape": (ONES, np.ones((3, 1), np.float32), "shape (3, 1), was (3,)"),
    "an axis that broadcasts": (np.float32(1.0), np.ones(1, np.float32), "shape (1,), was ()"),
    "a dtype": (ONES, ONES.astype(np.float16), "dtype float16, was float32"),
    "bfloat16": (jnp.bfloat16(1), jnp.float16(1), "dtype float16, was bfloat16"),
    "an integer": (np.int32([1, 2]), np.int32([1, 3]), "1 of 2 entries differ"),
    "a large integer": (np.uint32(2**31 + 1), np.uint32(2**31), "1 of 1 entries differ"),
    "a bool": (True, False, "1 of 1 entries differ"),
    "weak": (jnp.asarray(1.0), jnp.float32(1.0), "strongly typed, was weakly"),
    "strong": (jnp.int32(1), jnp.asarray(1), "weakly typed, was strongly"),
    "one entry": (
        {"a": ONES},
        {"a": np.float32([1, 1.001, 1])},
        "['a']: entry [1] is 1.001, was 1",
    ),
    "a sign": (np.float32(1e-20), np.float32(-1e-20), "entry [] is -1e-20, was 1e-20"),
    "NaN": (ONES, np.float32([1, np.nan, 1]), "different entries are finite"),
    "infinity": (np.float32(np.inf), np.float32(-np.inf), "different entries are finite"),
    "an imaginary part": (np.complex64(1 + 1j), np.complex64(1 - 1j), "entry [] is"),
    "a key": (KEY, jax.random.key(4), "entries differ"),
    "a key's kind": (KEY, jax.random.key(3, impl="rbg"), ""),
    "a string": ({"a": "x"}, {"a": "y"}, "['a']: is 'y', was 'x'"),
    "a string for a number": ("1", 1, "is an array on only one side"),
    "halves": (jnp.bfloat16(1.0), jnp.bfloat16(1.0625), "entry [] is 1.0625, was 1"),
}


@pytest.mark.parametrize("what", ALIKE)
def test_equal(compared: Comparing, what: str) -> None:
    before, after = ALIKE[what]
    found = compared(value(before), value(after))
    assert found.verdict == "equal", found.detail


@pytest.mark.parametrize("what", UNLIKE)
def test_different(compared: Comparing, what: str) -> None:
    before, after, words = UNLIKE[what]
    found = compared(value(before), value(after))
    assert found.verdict == "differs"
    assert words in found.detail
    assert compared(value(before), value(before)).verdict == "equal"


def test_nothing_but_nan_tells_nothing(compared: Comparing) -> None:
    found = compared(value(np.float32("nan")), value(np.float32("nan")))
    assert (found.verdict, found.detail) == ("not-exercised", "all its values are NaN")


class TestTolerance:
    """What the user allows."""

    def test_tolerance_of_one_dtype(self, compared: Comparing) -> None:
        sides = (value(np.float32(1.0)), value(np.float32(1.001)))
        assert compared(*sides, tolerances={"float32": 1e-2}).verdict == "equal"
        assert compared(*sides, tolerances={"float64": 1e-2}).verdict == "differs"
        near = (value(np.float32(1.0)), value(np.float32(1.000005)))
        assert compared(*near).verdict == "equal"
        assert compared(*near, tolerances={"float32": 1e-6}).verdict == "differs"

    def test_a_factor_for_all(self, compared: Comparing) -> None:
        sides = (value(jnp.float16(1.0)), value(jnp.float16(1.01)))
        assert compared(*sides).verdict == "differs"
        assert compared(*sides, tolerances={"*": 100.0}).verdict == "equal"

    def test_table_overrides_the_factor(self, compared: Comparing) -> None:
        sides = (value(jnp.float16(1.0)), value(jnp.float16(1.01)))
        allowed = {"*": 100.0, "float16": 1e-3}
        assert compared(*sides, tolerances=allowed).verdict == "differs"


class TestGradient:
    """Vector-Jacobian products."""

    def test_stop_gradient(self, compared: Comparing) -> None:
        found = compared(
            lambda x: x * jnp.exp(x), lambda x: x * jax.lax.stop_gradient(jnp.exp(x)), ONES
        )
        assert found.verdict == "differs"
        assert "in the gradient" in found.detail

    def test_stop_gradient_in_one_branch(self, compared: Comparing) -> None:
        def cut(x: Any, train: bool) -> Any:
            return jnp.sin(jax.lax.stop_gradient(x) if train else x)

        def whole(x: Any, train: bool) -> Any:
            return jnp.sin(x)

        assert compared(whole, cut, ONES, False).verdict == "equal"
        assert compared(whole, cut, ONES, True).verdict == "differs"

    def test_custom_vjp_rule(self, compared: Comparing) -> None:
        @jax.custom_vjp
        def doubled(x: Any) -> Any:
            return 2.0 * x

        doubled.defvjp(lambda x: (2.0 * x, None), lambda _, g: (3.0 * g,))
        found = compared(lambda x: 2.0 * x, doubled, ONES)
        assert (found.verdict, "in the gradient" in found.detail) == ("differs", True)

    def test_one_that_fails(self, compared: Comparing) -> None:
        @jax.custom_vjp
        def none(x: Any) -> Any:
            return 2.0 * x

        none.defvjp(lambda x: (2.0 * x, None), lambda _, g: fail("there is no gradient"))
        found = compared(lambda x: 2.0 * x, none, ONES)
        assert found.verdict == "fails-after"
        assert found.detail == "ValueError: there is no gradient in the gradient"

    def test_old_code_without_gradient(self, compared: Comparing) -> None:
        """If the old code has no gradient, the new code needs none."""

        @jax.custom_vjp
        def none(x: Any) -> Any:
            return 2.0 * x

        none.defvjp(lambda x: (2.0 * x, None), lambda _, g: fail("there is no gradient"))
        assert compared(none, lambda x: 2.0 * x, ONES).verdict == "equal"


class TestModes:
    """Eager and compiled."""

    def test_an_error_only_under_jit(self, compared: Comparing) -> None:
        found = compared(lambda x: 2.0 * x, lambda x: 2.0 * x if x.sum() > 0 else x, ONES)
        assert found.verdict == "fails-after"
        assert found.failure["type"] == "jax.errors.TracerBoolConversionError"

    def test_failure_existed_before(self, compared: Comparing) -> None:
        def branches(x: Any) -> Any:
            return 2.0 * x if x.sum() > 0 else x

        assert compared(branches, branches, ONES).verdict == "equal"
        assert compared(branches, lambda x: 2.0 * x, ONES).verdict == "equal"

    def test_a_value_only_under_jit(self, compared: Comparing) -> None:
        def constant(x: Any) -> Any:
            return x * (2.0 if isinstance(x, jax.core.Tracer) else 1.0)

        found = compared(lambda x: x * 1.0, constant, np.int32([1, 2, 3]))
        assert found.verdict == "differs"
        assert found.detail.endswith("under jax.jit")

    def test_large_differences_by_compilation_do_not_widen_the_tolerance(
        self, compared: Comparing
    ) -> None:
        """What compiling changes in the old code is rounding only as long as it is small."""

        def old(x: Any) -> Any:
            return x * (2.0 if isinstance(x, jax.core.Tracer) else 1.0)

        def new(x: Any) -> Any:
            return x * (3.0 if isinstance(x, jax.core.Tracer) else 1.0)

        assert compared(old, new, ONES).verdict == "differs"
        assert compared(old, old, ONES).verdict == "equal"


class TestFailures:
    """Code that raises."""

    def test_before(self, compared: Comparing) -> None:
        found = compared(lambda: fail("old"), lambda: 1)
        assert (found.verdict, found.detail) == ("fails-before", "ValueError: old")

    def test_after(self, compared: Comparing) -> None:
        found = compared(lambda: 1, lambda: fail("new\nand more"))
        assert (found.verdict, found.detail) == ("fails-after", "ValueError: new")
        assert found.failure["message"] == "new\nand more"


def test_defaults(compared: Comparing) -> None:
    def old(x: Any, scale: float = 2.0, *, causal: bool = False) -> Any:
        return x

    def new(x: Any, scale: float = 3.0, *, causal: bool = False) -> Any:
        return x

    def further(x: Any, scale: float = 2.0, *, causal: bool = False, more: int = 1) -> Any:
        return x

    found = compared(old, new, ONES)
    assert (found.verdict, found.detail) == ("differs", "the default of scale is 3.0, was 2.0")
    assert compared(old, further, ONES).verdict == "equal"


def test_abstract_arguments_are_not_computed(compared: Comparing) -> None:
    found = compared(jnp.sin, jnp.cos, jax.ShapeDtypeStruct((3,), jnp.float32))
    assert (found.verdict, found.detail) == ("not-exercised", "its arguments are abstract")
    assert found.is_abstract
