"""Arrays as bits: numpy's and JAX's, of every dtype, with what a dtype does not say.

A JAX array has a weak type besides its dtype, and a key array an implementation. numpy's file
format knows no bfloat16, float8 or int4: their bits are written, and the name of the dtype.
"""

from __future__ import annotations

import importlib
from typing import Any, ContextManager, Dict, Optional, Tuple

import jax
import jax.numpy as jnp
import numpy as np

from .bits import JaxBits

Description = Dict[str, Any]
# What older versions of JAX call a generator.
_BY_TAG = {"fry": "threefry2x32", "urbg": "unsafe_rbg"}


def is_tracer(value: Any) -> bool:
    """Whether JAX is tracing the value, so that it has no bits yet."""
    return isinstance(value, jax.core.Tracer)


def is_array(value: Any) -> bool:
    """Whether a value is an array or a numpy scalar, of exactly numpy's or JAX's own kind."""
    plain = type(value) in (np.ndarray, np.memmap)
    return plain or isinstance(value, (jax.Array, np.generic, JaxBits))


def is_device(value: Any) -> bool:
    """Whether a value is one of JAX's devices."""
    return isinstance(value, getattr(jax, "Device", ()))


def describe(value: Any) -> Tuple[Description, Optional[np.ndarray[Any, Any]]]:
    """What to write down about an array, and the bits, in a form that numpy's files can hold.

    Raises TypeError for arrays of objects, and what JAX raises for a deleted or far-away array.
    """
    if isinstance(value, JaxBits):
        about, bits = describe(value.array)
        about.update(kind="jax", weak=value.weak)
        return about if value.key is None else {"kind": "key", "impl": value.key, "of": about}, bits
    if isinstance(value, jax.Array) and is_key(value):
        about, bits = describe(jax.random.key_data(value))
        return {"kind": "key", "impl": key_implementation(value), "of": about}, bits
    about = {"kind": "numpy"}
    if isinstance(value, jax.Array):
        about = {"kind": "jax", "weak": bool(value.weak_type)}
    elif isinstance(value, np.generic):
        about = {"kind": "scalar"}
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise TypeError("an array of Python objects")
    about["dtype"] = dtype_name(array.dtype)
    about["shape"] = list(array.shape)
    if array.dtype == jax.dtypes.float0:
        return about, None
    return about, array if is_plain(array.dtype) else _as_bits(array)


def restore(about: Description, bits: Optional[np.ndarray[Any, Any]]) -> Any:
    """The array that `describe` was given."""
    if about["kind"] == "key":
        return _wrapped(restore(about["of"], bits), about["impl"])
    if bits is None:
        return np.zeros(about["shape"], jax.dtypes.float0)
    dtype = dtype_named(about["dtype"])
    array = bits if is_plain(dtype) else bits.view(dtype).reshape(about["shape"])
    if about["kind"] == "scalar":
        return array[()]
    if about["kind"] == "numpy":
        return array
    with _every_width():
        return _weak(jnp.asarray(array)) if about["weak"] else jnp.asarray(array)


def is_key(value: Any) -> bool:
    """Whether an array is one of random keys with a type of their own (`jax.random.key`)."""
    kind: Any = getattr(jax.dtypes, "prng_key", None)  # since jax 0.4.14
    if kind is None:
        return isinstance(value, getattr(jax.random, "PRNGKeyArray", ()))
    return bool(jnp.issubdtype(value.dtype, kind))


def key_implementation(keys: Any) -> str:
    """The name of the generator that keys are for."""
    tell: Any = getattr(jax.random, "key_impl", None)  # since jax 0.4.25
    implementation = keys.dtype if tell is None else tell(keys)
    for name in ("_impl", "impl"):
        implementation = getattr(implementation, name, implementation)
    name = str(getattr(implementation, "name", getattr(implementation, "tag", implementation)))
    return _BY_TAG.get(name, name)


def _wrapped(data: Any, implementation: str) -> Any:
    """Keys of their data."""
    implementation = _BY_TAG.get(implementation, implementation)
    wrap: Any = getattr(jax.random, "wrap_key_data", None)  # since jax 0.4.16
    if wrap is not None:
        return wrap(data, impl=implementation)
    internal: Any = importlib.import_module("jax._src.random")
    return internal.prng.random_wrap(data, impl=internal.PRNG_IMPLS[implementation])


def is_plain(dtype: Any) -> bool:
    """Whether numpy's own file format keeps the dtype."""
    if dtype.isbuiltin == 2 or dtype.hasobject:  # registered by somebody else, or pickled
        return False
    description = np.lib.format.dtype_to_descr(dtype)
    return bool(np.lib.format.descr_to_dtype(description) == dtype)


def dtype_name(dtype: Any) -> Any:
    """A dtype as JSON: its name where it is not numpy's own, else numpy's description of it."""
    if dtype == jax.dtypes.float0:
        return "float0"
    return np.lib.format.dtype_to_descr(dtype) if is_plain(dtype) else dtype.name


def dtype_named(name: Any) -> Any:
    """The dtype of which `dtype_name` gave the name, also after a way through JSON."""
    if isinstance(name, str):
        return jax.dtypes.float0 if name == "float0" else jnp.dtype(name)
    return np.lib.format.descr_to_dtype(_with_tuples(name))


def _with_tuples(description: Any) -> Any:
    """numpy wants tuples for the fields of a structured dtype; JSON has only lists."""
    if not isinstance(description, list):
        return description
    return [_field(field) for field in description]


def _field(field: Any) -> Any:
    name, kind, *shape = field
    title = tuple(name) if isinstance(name, list) else name
    return (title, _with_tuples(kind), *(tuple(size) for size in shape))


def _as_bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8)


def _every_width() -> ContextManager[Any]:
    """Lets a 64-bit array be made as it is, also where JAX makes 32-bit ones by default."""
    switch: Any = getattr(jax, "enable_x64", None)  # in jax.experimental before jax 0.8
    if switch is None:
        switch = importlib.import_module("jax.experimental").enable_x64
    width: ContextManager[Any] = switch(True)
    return width


def _weak(array: Any) -> Any:
    """An array with the weak type of Python's numbers, which nothing public gives to arrays."""
    from jax._src.lax import lax

    return lax._convert_element_type(array, array.dtype, weak_type=True)
