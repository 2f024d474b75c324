"""Arrays as plain data, including what a dtype does not say: weak types and key implementations.

Each `reduced` value is a function with its arguments, as `__reduce__` returns them. numpy's own
pickles name private modules that differ between numpy 1 and 2.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable, ContextManager, List, Tuple

import jax
import jax.numpy as jnp
import numpy as np

from .placeholders import HostArray

Reduced = Tuple[Callable[..., Any], Tuple[Any, ...]]
# What older versions of JAX call a generator.
_BY_TAG = {"fry": "threefry2x32", "urbg": "unsafe_rbg"}


def reduced_numpy(array: Any) -> Reduced:
    """Reduce a numpy array or scalar whose dtype is `object` or holds no objects."""
    if array.dtype == object:
        return object_array, (array.shape, list(array.flat))
    if isinstance(array, np.generic):
        return numpy_scalar, (array.dtype, array.tobytes())
    order = "F" if array.flags.fnc else "C"
    return numpy_array, (array.dtype, array.shape, order, array.tobytes(order))


def reduced_jax(array: jax.Array) -> Reduced:
    """Reduce a JAX array. Raises RuntimeError if it was deleted or is not all on this host."""
    if is_key(array):
        return wrapped_key, (key_data(array), key_implementation(array))
    return jax_array, (np.asarray(array), bool(array.weak_type))


def reduced_host(array: HostArray) -> Reduced:
    """Reduce a host array to what makes the JAX array; does not call JAX."""
    if array.key is not None:
        return wrapped_key, (HostArray(array.array), array.key)
    return jax_array, (array.array, array.weak)


def numpy_array(dtype: Any, shape: Tuple[int, ...], order: Any, data: bytes) -> Any:
    """Return the writable numpy array with these bytes."""
    return np.ndarray(shape, dtype, bytearray(data), order=order)


def numpy_scalar(dtype: Any, data: bytes) -> Any:
    """Return the numpy scalar with these bytes."""
    return np.ndarray((), dtype, data)[()]


def object_array(shape: Tuple[int, ...], objects: List[Any]) -> Any:
    """Return an array of Python objects, which numpy must not take for nested arrays."""
    array = np.empty(len(objects), object)
    for i, value in enumerate(objects):
        array[i] = value
    return array.reshape(shape)


def jax_array(array: Any, weak: bool) -> Any:
    """Return a JAX array of the same dtype, 64-bit ones included."""
    switch: Any = getattr(jax, "enable_x64", None)  # in jax.experimental before jax 0.8
    if switch is None:
        switch = importlib.import_module("jax.experimental").enable_x64
    width: ContextManager[Any] = switch(True)
    with width:
        made = jnp.asarray(array)
        if not weak:
            return made
        from jax._src.lax import lax  # no public function makes an array weakly typed

        return lax._convert_element_type(made, made.dtype, weak_type=True)


def is_key(value: Any) -> bool:
    """Return whether a JAX array or tracer holds typed random keys (`jax.random.key`)."""
    kind: Any = getattr(jax.dtypes, "prng_key", None)  # since jax 0.4.14
    if kind is None:
        return isinstance(value, getattr(jax.random, "PRNGKeyArray", ()))
    return bool(jnp.issubdtype(value.dtype, kind))


def key_data(keys: Any) -> Any:
    """Return the contents of typed random keys as a JAX array of integers."""
    unwrap: Any = getattr(jax.random, "key_data", None)  # since jax 0.4.16
    return (unwrap or jax.random.unsafe_raw_array)(keys)  # type: ignore[attr-defined]


def key_implementation(keys: Any) -> str:
    """Return the name of the generator that keys are for."""
    tell: Any = getattr(jax.random, "key_impl", None)  # since jax 0.4.25
    implementation = keys.dtype if tell is None else tell(keys)
    for name in ("_impl", "impl"):
        implementation = getattr(implementation, name, implementation)
    name = str(getattr(implementation, "name", getattr(implementation, "tag", implementation)))
    return _BY_TAG.get(name, name)


def wrapped_key(data: Any, implementation: str) -> Any:
    """Return typed random keys with these contents."""
    implementation = _BY_TAG.get(implementation, implementation)
    wrap: Any = getattr(jax.random, "wrap_key_data", None)  # since jax 0.4.16
    if wrap is not None:
        return wrap(data, impl=implementation)
    internal: Any = importlib.import_module("jax._src.random")
    return internal.prng.random_wrap(data, impl=internal.PRNG_IMPLS[implementation])
