"""Peaks of live bytes, counted by hand: a vector below has 256 floats, 1024 bytes."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax")

from jax import lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

from remat_migrate.measure.worker.instruments.flops import flops  # noqa: E402
from remat_migrate.measure.worker.instruments.liveness import course, peak, size, temporary  # noqa: E402
from remat_migrate.measure.worker.internals import internals  # noqa: E402

ONE = 1024
VECTOR = jax.ShapeDtypeStruct((256,), "float32")


def both(function: Any, *args: Any) -> tuple[int, int]:
    """With the outputs, and without."""
    jaxpr = jax.make_jaxpr(function)(*(args or (VECTOR,)))
    return peak(jaxpr), temporary(jaxpr)


def test_an_array_lives_from_where_it_is_made_to_its_last_use() -> None:
    # sin and cos; cos and tanh; never all three.
    assert both(lambda x: jnp.tanh(jnp.cos(jnp.sin(x)))) == (2 * ONE, 2 * ONE)


def test_arguments_do_not_count_and_outputs_do() -> None:
    assert both(lambda x: x) == (0, 0)
    assert both(jnp.sin) == (ONE, 0)
    assert both(lambda x: (jnp.sin(x), jnp.cos(x))) == (2 * ONE, 0)
    # The first output is there until the end.
    assert both(lambda x: ((y := jnp.sin(x)), jnp.cos(jnp.tanh(y)))) == (3 * ONE, ONE)


def test_views_share_the_bytes_of_what_they_look_at() -> None:
    assert both(lambda x: jnp.sin(x).reshape(16, 16).T) == (ONE, 0)
    assert both(lambda x: jnp.broadcast_to(jnp.sin(x), (64, 256)).sum(0)) == (2 * ONE, ONE)
    # The sine lives on in its view, besides two others.
    assert both(lambda x: (y := jnp.sin(x)).reshape(16, 16).sum(0) + jnp.cos(y)[:16].sum()) == (
        2 * ONE + 64,
        2 * ONE + 64,
    )


def test_products_and_reductions() -> None:
    left, right = (jax.ShapeDtypeStruct(shape, "float32") for shape in ((8, 32), (32, 16)))
    assert both(lambda a, b: a @ b, left, right) == (8 * 16 * 4, 0)
    assert both(lambda a, b: (a @ b).sum(), left, right) == (8 * 16 * 4 + 4, 8 * 16 * 4)


def test_calls_of_jitted_functions_are_dissolved() -> None:
    once = jax.jit(lambda x: jnp.cos(jnp.sin(x)))
    assert both(once) == (2 * ONE, ONE)
    # The first sine is gone when the second call begins.
    assert both(lambda x: once(once(x))) == (2 * ONE, 2 * ONE)
    # What is passed to a call lives on where it is used after it.
    assert both(lambda x: once(y := jnp.tanh(x)) + y) == (3 * ONE, 3 * ONE)


def test_a_checkpoint_needs_its_own_peak() -> None:
    checkpointed = jax.checkpoint(lambda x: jnp.tanh(jnp.cos(jnp.sin(x))))
    assert both(checkpointed) == (2 * ONE, 2 * ONE)
    # Its two outputs are those of the program: inside they are set aside as well.
    two = jax.checkpoint(lambda x: ((y := jnp.sin(x)), jnp.cos(y)))
    assert both(two) == (2 * ONE, 0)


def test_a_scan_needs_what_its_body_needs_besides_what_it_gives() -> None:
    def step(carried: Any, _: Any) -> Any:
        carried = jnp.sin(carried)
        return carried, jnp.cos(carried)

    # Last carry and five results, and in the body one of each.
    assert both(lambda x: lax.scan(step, x, None, length=5)) == (6 * ONE + 2 * ONE, 2 * ONE)


def test_of_branches_the_one_that_needs_most() -> None:
    def either(which: Any, x: Any) -> Any:
        return lax.cond(which, lambda x: jnp.tanh(jnp.cos(jnp.sin(x))), lambda x: x + 1, x)

    which = jax.ShapeDtypeStruct((), "bool")
    # The condition is converted to a number of four bytes.
    assert both(either, which, VECTOR) == (2 * ONE + 4, 2 * ONE + 4)


def test_a_checkpoint_on_each_part_lowers_the_peak_of_the_gradient() -> None:
    def part(x: Any) -> Any:
        return jnp.sin(jnp.sin(jnp.sin(jnp.sin(x))))

    def gradient_peak(wrapped: Any) -> int:
        def loss(x: Any) -> Any:
            return wrapped(wrapped(wrapped(wrapped(x)))).sum()

        jaxpr = jax.make_jaxpr(jax.grad(loss))(VECTOR)
        return peak(internals().dead_code_removed(jaxpr))

    # The cosines of sixteen sines, the cotangent and its first product.
    assert gradient_peak(part) == 18 * ONE
    # What three of the parts are given (the fourth is given the argument), the cotangent, and
    # inside the last part four cosines and a sine.
    assert gradient_peak(jax.checkpoint(part)) == 9 * ONE


@pytest.mark.parametrize(
    ("dtype", "expected"), [("float32", 24), ("bfloat16", 12), ("int8", 6), ("bool", 6)]
)
def test_size(dtype: str, expected: int) -> None:
    assert size(jax.core.ShapedArray((2, 3), jnp.dtype(dtype))) == expected


def test_the_size_of_what_is_no_array() -> None:
    assert size(None) == 0
    assert size(jax.eval_shape(lambda: jax.random.key(0))) > 0


def test_the_course_reaches_the_peak_and_ends_with_what_is_given() -> None:
    def chained(x: Any) -> Any:
        return jnp.tanh(jnp.cos(jnp.sin(x)))

    # An operation for each entry; before it, what is live while it runs.
    assert course(jax.make_jaxpr(chained)(VECTOR)) == [
        (0, ONE),
        (256, 2 * ONE),
        (512, 2 * ONE),
        (768, ONE),
    ]


@pytest.mark.parametrize("rounds", [3, 500], ids=["turn by turn", "as one piece"])
def test_the_course_of_a_gradient_under_checkpoints_in_a_loop(rounds: int) -> None:
    def loss(x: Any) -> Any:
        body = jax.checkpoint(lambda carry, _: (jnp.sin(jnp.cos(carry)), None))
        return jnp.sum(lax.scan(body, x, None, length=rounds)[0])

    jaxpr = internals().dead_code_removed(jax.make_jaxpr(jax.grad(loss))(VECTOR))
    points = course(jaxpr)
    assert max(live for _, live in points) == peak(jaxpr)
    done = [at for at, _ in points]
    assert done == sorted(done)
    assert points[-1] == (flops(jaxpr), ONE)
    assert len(points) <= 302
