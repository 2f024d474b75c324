"""Operations of jaxprs, counted by hand."""

from __future__ import annotations

import functools
from typing import Any

import pytest

jax = pytest.importorskip("jax")

from jax import lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

from remat_migrate.measure.worker.instruments.flops import flops  # noqa: E402


def shape(*dimensions: int, dtype: str = "float32") -> Any:
    return jax.ShapeDtypeStruct(dimensions, dtype)


def counted(function: Any, *args: Any) -> int:
    return flops(jax.make_jaxpr(function)(*args))


def test_matrix_products() -> None:
    assert counted(jnp.matmul, shape(8, 32), shape(32, 16)) == 2 * 8 * 32 * 16
    assert counted(jnp.matmul, shape(5, 8, 32), shape(5, 32, 16)) == 5 * 2 * 8 * 32 * 16
    assert counted(jnp.dot, shape(32), shape(32)) == 2 * 32


def test_contraction_over_two_axes() -> None:
    product = counted(lambda a, b: jnp.einsum("ijk,jkl->il", a, b), shape(4, 3, 5), shape(3, 5, 7))
    assert product == 2 * 4 * 7 * 15


def convolved(groups: int) -> Any:
    def convolution(x: Any, kernel: Any) -> Any:
        return lax.conv_general_dilated(
            x,
            kernel,
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )

    return convolution


def test_convolutions() -> None:
    # Each of 2 x 8 x 8 x 5 outputs sums over 3 x 3 places of 4 channels.
    entries = 2 * 8 * 8 * 5
    assert counted(convolved(1), shape(2, 8, 8, 4), shape(3, 3, 4, 5)) == 2 * entries * 36
    # In two groups over half of the channels.
    entries = 2 * 8 * 8 * 6
    assert counted(convolved(2), shape(2, 8, 8, 4), shape(3, 3, 2, 6)) == 2 * entries * 18


def test_fourier_transforms() -> None:
    assert counted(jnp.fft.fft, shape(3, 64, dtype="complex64")) == 3 * 5 * 64 * 6
    two = counted(jnp.fft.fft2, shape(3, 8, 16, dtype="complex64"))
    assert two == 3 * 5 * 128 * 7


def test_linear_algebra() -> None:
    solve = functools.partial(lax.linalg.triangular_solve, left_side=True)
    assert counted(solve, shape(3, 32, 32), shape(3, 32, 5)) == 3 * 32 * 32 * 5
    factor = functools.partial(lax.linalg.cholesky, symmetrize_input=False)
    assert counted(factor, shape(30, 30)) >= 30**3 / 3
    assert counted(lax.linalg.lu, shape(30, 30)) >= 2 / 3 * 30**3
    assert counted(jnp.linalg.eigh, shape(30, 30)) >= 9 * 30**3


def test_one_operation_per_element() -> None:
    assert counted(lambda x: jnp.sin(x) + x, shape(4, 8)) == 2 * 32
    # A reduction has one per input element.
    assert counted(lambda x: x.sum(1), shape(4, 8)) == 32
    assert counted(lambda x: x.max(), shape(4, 8)) == 32


def test_data_movement_is_free() -> None:
    assert counted(lambda x: x.reshape(8, 4).T[:2].astype("bfloat16"), shape(4, 8)) == 0
    assert counted(lambda x: jnp.concatenate([x, x]), shape(4, 8)) == 0
    assert counted(lambda x: jnp.broadcast_to(x, (3, 4, 8)), shape(4, 8)) == 0


def test_scan_counts_each_iteration() -> None:
    def step(carried: Any, x: Any) -> Any:
        return carried * x + 1, None

    one = counted(lambda c, xs: lax.scan(step, c, xs)[0], shape(16), shape(5, 16))
    assert one == 5 * 2 * 16

    def outer(carried: Any, _: Any) -> Any:
        return lax.scan(step, carried, jnp.ones((5, 16)))[0], None

    nested = counted(lambda c: lax.scan(outer, c, None, length=3)[0], shape(16))
    assert nested == 3 * 5 * 2 * 16


def test_while_counts_once() -> None:
    def loop(x: Any) -> Any:
        return lax.while_loop(lambda x: x[0] < 3, lambda x: jnp.sin(x) * x, x)

    # Its body, and the comparison of one number.
    assert counted(loop, shape(16)) == 2 * 16 + 1


def test_most_expensive_branch_counts() -> None:
    def either(which: Any, x: Any) -> Any:
        return lax.cond(which, lambda x: jnp.sin(jnp.sin(jnp.sin(x))), jnp.cos, x)

    assert counted(either, shape(dtype="bool"), shape(16)) == 3 * 16


def test_calls_count_their_bodies() -> None:
    def function(x: Any) -> Any:
        return jnp.sin(jnp.cos(x))

    jitted = jax.jit(function)
    assert counted(lambda x: jitted(jitted(x)), shape(16)) == 4 * 16
    assert counted(jax.checkpoint(function), shape(16)) == 2 * 16


def test_checkpoint_adds_forward_pass_to_gradient() -> None:
    def layer(weights: Any, x: Any) -> Any:
        return jnp.tanh(x @ weights)

    def product(wrapped: Any) -> int:
        def loss(weights: Any, x: Any) -> Any:
            return wrapped(weights, wrapped(weights, x)).sum()

        args = shape(64, 64), shape(256, 64)
        return round(counted(jax.value_and_grad(loss), *args) / (2 * 256 * 64 * 64))

    # Forward two products; backward two for the weights, and one for what the second is given.
    assert product(layer) == 5
    assert product(jax.checkpoint(layer)) == 5 + 2
