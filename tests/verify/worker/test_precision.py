"""How far results may be apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worker_package import load_worker

evaluate = load_worker("comparison.evaluate")
compare = load_worker("comparison.compare")
precision = load_worker("comparison.precision")

X = np.random.RandomState(0).standard_normal((3, 4)).astype(np.float32)

Comparing = Callable[..., Any]


@pytest.fixture
def decided(tmp_path: Path) -> Comparing:
    """Compares two functions."""

    def run(before: Any, after: Any, *args: Any) -> Any:
        case = {"args": args, "kwargs": {}, "context": None}
        for name, unit in (("old", before), ("new", after)):
            evaluate.evaluate(unit, case, str(tmp_path / name))
        return compare.compare(str(tmp_path / "old"), str(tmp_path / "new"))

    return run


class TestPrecision:
    """The tolerance follows the lowest precision that the old code rounds to."""

    @staticmethod
    def layer(x: Any) -> Any:
        h = jnp.tanh(x.astype(jnp.bfloat16))
        return (h * h + h / 3 - jnp.exp(h)).astype(jnp.float32)

    @staticmethod
    def lowest(function: Any) -> str:
        return str(precision.lowest_precision(jax.make_jaxpr(function)(X).jaxpr))

    def test_lowest(self) -> None:
        assert self.lowest(jnp.sin) == "float32"
        assert self.lowest(self.layer) == "bfloat16"
        assert self.lowest(jax.jit(lambda x: jax.lax.map(self.layer, x))) == "bfloat16"
        assert self.lowest(lambda x: x.shape) == ""

    def test_what_is_only_converted_is_rounded_alike(self) -> None:
        def dense(x: Any) -> Any:
            x = x.astype(jnp.bfloat16).reshape(4, 3)
            return jnp.matmul(x, x.T, preferred_element_type=jnp.float32)

        assert self.lowest(dense) == "float32"
        assert self.lowest(lambda x: dense(x * 3.0)) == "bfloat16"

        def step(carry: Any, _: Any) -> Any:
            return dense(carry)[:3, :] + carry, None

        assert self.lowest(lambda x: jax.lax.scan(step, x, None, 3)[0]) == "bfloat16"

    def test_order_of_a_sum(self, decided: Comparing) -> None:
        def total(x: Any, order: int) -> Any:
            terms = (3.0 * x).astype(jnp.bfloat16).reshape(-1)[::order]
            return sum(terms[1:], terms[0]).astype(jnp.float32)

        found = decided(lambda x: total(x, 1), lambda x: total(x, -1), X * X)
        assert found.verdict == "equal", found.detail
        assert found.max_rel > 1e-3
        assert (
            decided(lambda x: total(x, 1), lambda x: total(1.05 * x, 1), X * X).verdict == "differs"
        )

    def test_a_fault_in_bfloat16(self, decided: Comparing) -> None:
        assert decided(self.layer, lambda x: self.layer(1.05 * x), X).verdict == "differs"

    def test_accumulation_is_not_lower(self, decided: Comparing) -> None:
        def dense(x: Any, **options: Any) -> Any:
            x = x.astype(jnp.bfloat16)
            return jnp.matmul(x, x.T, **options).astype(jnp.float32)

        right = {"preferred_element_type": jnp.float32}
        assert decided(lambda x: dense(x, **right), dense, X).verdict == "differs"
