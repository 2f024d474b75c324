"""Objects and functions to pass where nothing else says what an argument is.

They are pickled by name, so both sides of a comparison find them here.
"""

from __future__ import annotations

import inspect
import math
import types
import zlib
from typing import Any, Iterable, Iterator, List, Tuple

import jax
import jax.numpy as jnp
import numpy as np

from ..lookup import attribute, has
from ..transfer.arrays import is_key, key_data


class _Readable(types.SimpleNamespace):
    """An object that can also be read as a mapping of its attributes."""

    def __getattr__(self, name: str) -> Any:
        """Refuse what the old code did not read; the parent recognises the name of this module."""
        raise AttributeError("{!r} has no attribute {!r}".format(type(self), name))

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]

    def __contains__(self, name: object) -> bool:
        return name in vars(self)

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def get(self, name: str, default: Any = None) -> Any:
        """As for a dict."""
        return vars(self).get(name, default)

    def keys(self) -> Iterable[str]:
        """As for a dict."""
        return vars(self).keys()

    def items(self) -> Iterable[Tuple[str, Any]]:
        """As for a dict."""
        return vars(self).items()


class Settings(_Readable):
    """An object without arrays among its attributes; hashable by content, so it can be static."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(vars(self).items())))


class Record(_Readable):
    """An object whose attributes are arrays; registered as a pytree.

    Functions and other attributes without arrays are part of its structure.
    """


def _flatten(record: Record) -> Tuple[Tuple[Any, ...], Tuple[Any, ...]]:
    names = sorted(vars(record))
    arrays = tuple(name for name in names if _has_arrays(getattr(record, name)))
    rest = tuple((name, getattr(record, name)) for name in names if name not in arrays)
    return tuple(getattr(record, name) for name in arrays), (arrays, rest)


def _has_arrays(thing: Any) -> bool:
    # Tracers, and the placeholders of transformations, count as arrays.
    leaves = jax.tree_util.tree_leaves(thing)
    fixed = (str, bool, int, float, Function)
    return not all(isinstance(leaf, fixed) or inspect.isroutine(leaf) for leaf in leaves)


def _unflatten(names: Tuple[Any, ...], children: Any) -> Record:
    arrays, rest = names
    return Record(**dict(zip(arrays, children)), **dict(rest))


jax.tree_util.register_pytree_node(Record, _flatten, _unflatten)


class Function:
    """A smooth function of all its arguments, in the shape of the largest array among them.

    Arrays, flags, numbers, strings, and random keys all matter, and so does their order.
    `positional` and `names` say how it was called first: an argument then passed by keyword may
    also be passed by position. Functions of other `number` compute something else. If it is asked
    for an array of a shape, as an initialiser is, it makes one.
    """

    __name__ = "function"

    def __init__(self, positional: int = 0, names: Tuple[str, ...] = (), number: int = 0) -> None:
        self.positional = positional
        self.names = names
        self.number = number

    def __repr__(self) -> str:
        return "Function({}, {!r}, {})".format(self.positional, self.names, self.number)

    def __eq__(self, other: object) -> bool:
        return type(other) is Function and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return a mixture of everything."""
        given = [(at, part) for at, part in enumerate(args)]
        given += [(self._place(name), kwargs[name]) for name in sorted(kwargs)]
        main = _main([part for _, part in given])
        total: Any = 0.0
        for place, part in given:
            if part is not main:
                for number, leaf in enumerate(jax.tree_util.tree_leaves(part)):
                    total = total + _weight(place + 17 * number) * _feature(leaf)
        if main is None:
            shape = next((part for _, part in given if _is_shape(part)), ())
            result = 0.3 * _pattern(shape) + total
        else:
            bent = jnp.tanh((1 + 0.2 * self.number) * main + 0.1 * _pattern(main.shape[-1:]))
            result = ((1 + 0.3 * jnp.tanh(total)) * bent + 0.5 * total).astype(main.dtype)
        return result

    def _place(self, name: str) -> int:
        if name in self.names:
            return self.positional + self.names.index(name)
        return 100 + zlib.crc32(name.encode()) % 1000


mixture = Function()


def _main(parts: List[Any]) -> Any:
    """Return the float array of the highest rank; the last of several."""
    arrays = [part for part in parts if _is_float(part)]
    if not arrays:
        arrays = [leaf for leaf in jax.tree_util.tree_leaves(parts) if _is_float(leaf)][-1:]
    return max(reversed(arrays), key=jnp.ndim, default=None)


def _is_float(thing: Any) -> bool:
    return has(thing, "shape") and bool(jnp.issubdtype(thing.dtype, jnp.floating))


def _is_shape(thing: Any) -> bool:
    return isinstance(thing, (tuple, list)) and bool(thing) and all(type(n) is int for n in thing)


def _weight(place: int) -> float:
    """Return a number from 0.5 to 1.5, different for each place."""
    return 0.5 + (0.618034 * (place + 1)) % 1.0


def _pattern(shape: Any) -> Any:
    return np.cos(np.arange(int(np.prod(shape)), dtype=np.float32)).reshape(shape)


def _feature(leaf: Any) -> Any:
    """Return a number that depends on a leaf."""
    if not has(leaf, "dtype") or isinstance(leaf, type):
        return _feature_of_object(leaf)
    if is_key(leaf):
        leaf = key_data(leaf)
    if leaf.dtype == jnp.bool_:
        numbers = jnp.where(leaf, 0.7, -0.4)
    elif leaf.dtype == jnp.uint32:  # a random key
        spread = leaf * jnp.uint32(2654435761)
        numbers = (spread >> 9).astype(jnp.float32) / 2**23
    elif jnp.issubdtype(leaf.dtype, jnp.integer):
        numbers = jnp.sin(0.7 * leaf + 0.2)
    elif jnp.issubdtype(leaf.dtype, jnp.complexfloating):
        numbers = jnp.tanh(leaf.real + 0.5 * leaf.imag)
    else:
        numbers = jnp.tanh(leaf)
    return jnp.mean(numbers * (1.2 + _pattern(numbers.shape)))


def _feature_of_object(thing: Any) -> float:
    if isinstance(thing, bool):
        return 2.2 * (0.7 if thing else -0.4)
    if isinstance(thing, int):
        return 2.2 * math.sin(0.7 * thing + 0.2)
    if isinstance(thing, float):
        return 2.2 * math.tanh(thing)
    text = thing if isinstance(thing, str) else attribute(thing, "__name__", "")
    return zlib.crc32(str(text).encode()) / 2**32
