"""The peak of live bytes, counted by hand: each vector has 256 floats, which are 1024 bytes."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax")

from jax import lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

from remat_migrate.measure.worker.instruments.liveness import peak, size  # noqa: E402
from remat_migrate.measure.worker.internals import internals  # noqa: E402

ONE = 1024
VECTOR = jax.ShapeDtypeStruct((256,), "float32")


def peak_of(function: Any, *args: Any) -> int:
    return peak(jax.make_jaxpr(function)(*(args or (VECTOR,))))


def test_array_is_live_until_last_use() -> None:
    # sin and cos, then cos and tanh, but never all three.
    assert peak_of(lambda x: jnp.tanh(jnp.cos(jnp.sin(x)))) == 2 * ONE


def test_outputs_count_but_arguments_do_not() -> None:
    assert peak_of(lambda x: x) == 0
    assert peak_of(jnp.sin) == ONE
    assert peak_of(lambda x: (jnp.sin(x), jnp.cos(x))) == 2 * ONE
    # The first output is live until the end.
    assert peak_of(lambda x: ((y := jnp.sin(x)), jnp.cos(jnp.tanh(y)))) == 3 * ONE


def test_views_share_the_bytes_of_their_operand() -> None:
    assert peak_of(lambda x: jnp.sin(x).reshape(16, 16).T) == ONE
    assert peak_of(lambda x: jnp.broadcast_to(jnp.sin(x), (64, 256)).sum(0)) == 2 * ONE
    # The sine stays live because of its view.
    read_by_view = peak_of(
        lambda x: (y := jnp.sin(x)).reshape(16, 16).sum(0) + jnp.cos(y)[:16].sum()
    )
    assert read_by_view == 2 * ONE + 64
    # A loop over the columns of an argument needs them in order.
    rows = jax.ShapeDtypeStruct((4, 256), "float32")
    assert peak_of(lambda x: lax.scan(lambda s, c: (s + c.sum(), None), 0.0, x), rows) < ONE
    assert peak_of(lambda x: lax.scan(lambda s, c: (s + c.sum(), None), 0.0, x.T), rows) > 4 * ONE


def test_products_and_reductions() -> None:
    left, right = (jax.ShapeDtypeStruct(shape, "float32") for shape in ((8, 32), (32, 16)))
    assert peak_of(lambda a, b: a @ b, left, right) == 8 * 16 * 4
    assert peak_of(lambda a, b: (a @ b).sum(), left, right) == 8 * 16 * 4 + 4


def test_jitted_calls_are_inlined() -> None:
    once = jax.jit(lambda x: jnp.cos(jnp.sin(x)))
    assert peak_of(once) == 2 * ONE
    # The first sine is freed before the second call.
    assert peak_of(lambda x: once(once(x))) == 2 * ONE
    # An argument of the call stays live if it is used later.
    assert peak_of(lambda x: once(y := jnp.tanh(x)) + y) == 3 * ONE


def test_checkpoint_adds_its_own_peak() -> None:
    checkpointed = jax.checkpoint(lambda x: jnp.tanh(jnp.cos(jnp.sin(x))))
    assert peak_of(checkpointed) == 2 * ONE
    # Its two outputs are the outputs of the program.
    two = jax.checkpoint(lambda x: ((y := jnp.sin(x)), jnp.cos(y)))
    assert peak_of(two) == 2 * ONE


def test_scan_adds_the_peak_of_its_body() -> None:
    def step(carried: Any, _: Any) -> Any:
        carried = jnp.sin(carried)
        return carried, jnp.cos(carried)

    # The last carry and five outputs, and one of each in the body.
    assert peak_of(lambda x: lax.scan(step, x, None, length=5)) == 6 * ONE + 2 * ONE


def test_the_largest_branch_counts() -> None:
    def either(which: Any, x: Any) -> Any:
        return lax.cond(which, lambda x: jnp.tanh(jnp.cos(jnp.sin(x))), lambda x: x + 1, x)

    which = jax.ShapeDtypeStruct((), "bool")
    # The predicate is converted to an integer of four bytes.
    assert peak_of(either, which, VECTOR) == 2 * ONE + 4


def test_checkpoints_lower_the_gradient_peak() -> None:
    def part(x: Any) -> Any:
        return jnp.sin(jnp.sin(jnp.sin(jnp.sin(x))))

    def gradient_peak(wrapped: Any) -> int:
        def loss(x: Any) -> Any:
            return wrapped(wrapped(wrapped(wrapped(x)))).sum()

        jaxpr = jax.make_jaxpr(jax.grad(loss))(VECTOR)
        return peak(internals().dead_code_removed(jaxpr))

    # The cosines of sixteen sines, the cotangent and its first product.
    assert gradient_peak(part) == 18 * ONE
    # The inputs of three parts (the input of the first is an argument), the cotangent, and four
    # cosines and a sine inside the last part.
    assert gradient_peak(jax.checkpoint(part)) == 9 * ONE


@pytest.mark.parametrize(
    ("dtype", "expected"), [("float32", 24), ("bfloat16", 12), ("int8", 6), ("bool", 6)]
)
def test_size(dtype: str, expected: int) -> None:
    assert size(jax.core.ShapedArray((2, 3), jnp.dtype(dtype))) == expected


def test_size_of_other_values() -> None:
    assert size(None) == 0
    assert size(jax.eval_shape(lambda: jax.random.key(0))) > 0
