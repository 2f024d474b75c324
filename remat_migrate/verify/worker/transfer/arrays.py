"""Arrays as plain data, including what a dtype does not say: weak types and key implementations.

Each `reduced` value is a function with its arguments, as `__reduce__` returns them. An `abstract`
one keeps only shape and dtype: loading it gives made numbers, the same in every process.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import jax_internals

Reduced = tuple[Callable[..., Any], tuple[Any, ...]]


def reduced(array: jax.Array) -> Reduced:
    """Reduce a JAX array. Raises RuntimeError if it was deleted or is not all on this host."""
    if is_key(array):
        return wrapped_key, (key_data(array), key_implementation(array))
    return jax_array, (np.asarray(array), bool(array.weak_type))


def abstract(array: Any, number: int, positive: bool) -> Reduced:
    """Reduce an array or a tracer to its shape and dtype.

    Args:
        array: a JAX array, a tracer, or a numpy array for which `has_numbers`.
        number: what distinguishes its made numbers from those of other arrays.
        positive: whether these are positive.

    Raises:
        TypeError: it is a reference, or its shape is unknown.
    """
    if isinstance(array, np.ndarray):
        return made_numpy, (array.shape, array.dtype, number, positive)
    if not isinstance(array.aval, jax.core.ShapedArray) or not all(
        isinstance(size, int) for size in array.shape
    ):
        raise TypeError(str(array.aval))
    if is_key(array):
        return made_key, (array.shape, key_implementation(array), number)
    return made_jax, (array.shape, array.dtype, bool(array.weak_type), number, positive)


def has_numbers(array: Any) -> bool:
    """Return whether the entries of an array are numbers, booleans, or random keys."""
    if not isinstance(array, np.ndarray):
        return True
    is_plain = type(array) in (np.ndarray, np.memmap)
    return is_plain and (array.dtype.kind in "biufc" or jnp.issubdtype(array.dtype, np.number))


def made_numpy(shape: tuple[int, ...], dtype: Any, number: int, positive: bool) -> Any:
    """Return a numpy array of made numbers; integers index any axis but one of length 1."""
    random = np.random.default_rng(number)
    return made_numbers(random, shape, dtype, positive, most=2).astype(dtype)


def made_jax(shape: tuple[int, ...], dtype: Any, weak: bool, number: int, positive: bool) -> Any:
    """Return a JAX array of made numbers."""
    made = made_numbers(np.random.default_rng(number), shape, dtype, positive)
    if len(shape) > 1 and jnp.issubdtype(dtype, jnp.inexact):
        # It may hold weights of a deep network: activations keep their size.
        made = made * (3.0 / max(3, int(np.prod(shape[:-1])))) ** 0.5
    return jax_array(made.astype(dtype), weak)


def made_key(shape: tuple[int, ...], implementation: str, number: int) -> Any:
    """Return typed random keys."""
    key = jax.random.key(number, impl=implementation)
    return jax.random.split(key, shape) if shape else key


def jax_array(array: Any, weak: bool) -> Any:
    """Return a JAX array of the same dtype, 64-bit ones included."""
    switch: Any = getattr(jax, "enable_x64", None)  # in jax.experimental before jax 0.8
    if switch is None:
        switch = importlib.import_module("jax.experimental").enable_x64
    width: AbstractContextManager[Any] = switch(True)
    with width:
        made = jnp.asarray(array)
        return jax_internals.weakly_typed(made) if weak else made


def is_key(value: Any) -> bool:
    """Return whether a JAX array or tracer holds typed random keys (`jax.random.key`)."""
    return bool(jnp.issubdtype(value.dtype, jax.dtypes.prng_key))


def key_data(keys: Any) -> Any:
    """Return the contents of typed random keys as a JAX array of integers."""
    return jax.random.key_data(keys)


def key_implementation(keys: Any) -> str:
    """Return the name of the generator that keys are for."""
    return str(jax.random.key_impl(keys))


def wrapped_key(data: Any, implementation: str) -> Any:
    """Return typed random keys with these contents."""
    return jax.random.wrap_key_data(data, impl=implementation)


def made_numbers(
    random: np.random.Generator,
    shape: tuple[int, ...],
    dtype: Any,
    positive: bool = False,
    most: int = 4,
) -> np.ndarray:
    """Return random numbers, those for inexact dtypes as float64.

    These lie in (-1, 1), or in (0.5, 1.5) if they must be `positive`. Integers are below `most`.
    """
    kind = jnp.dtype(dtype)
    if kind == np.bool_:
        return np.asarray(random.random(shape) < 0.7)
    if jnp.issubdtype(kind, jnp.integer):
        return np.asarray(random.integers(0, most, shape)).astype(kind)
    low = 0.5 if positive else -1.0
    return np.asarray(random.uniform(low, low + (1.0 if positive else 2.0), shape))
