"""Objects and functions to pass where nothing else says what an argument is.

They are pickled by name, so both sides of a comparison find them here.
"""

from __future__ import annotations

import inspect
import zlib
from typing import Any, Dict, List, Tuple

import jax
import jax.numpy as jnp
import numpy as np

from ..lookup import attribute, has
from ..transfer.arrays import is_key, key_data


class Record(Dict[str, Any]):
    """A dictionary whose entries are attributes, too, as in most configurations.

    Registered as a pytree of its entries with arrays; the others are part of its structure. It is
    hashable by content, so that it can be static.
    """

    def __getattr__(self, name: str) -> Any:
        """Refuse what the old code did not read; the parent recognises the name of this module."""
        if name in self:
            return self[name]
        raise AttributeError("{!r} has no attribute {!r}".format(type(self), name))

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items())))


def _flatten(record: Record) -> Tuple[Tuple[Any, ...], Tuple[Any, ...]]:
    arrays = tuple(name for name in sorted(record) if _has_arrays(record[name]))
    rest = tuple((name, record[name]) for name in sorted(record) if name not in arrays)
    return tuple(record[name] for name in arrays), (arrays, rest)


def _has_arrays(thing: Any) -> bool:
    # Tracers, and the placeholders of transformations, count as arrays.
    leaves = jax.tree_util.tree_leaves(thing)
    fixed = (str, bool, int, float, Function)
    return not all(isinstance(leaf, fixed) or inspect.isroutine(leaf) for leaf in leaves)


jax.tree_util.register_pytree_node(
    Record, _flatten, lambda names, leaves: Record([*zip(names[0], leaves), *names[1]])
)


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


def numbered(thing: Any, number: int) -> Any:
    """Return an element of a list; of functions another one each, so that their order matters."""
    return Function(thing.positional, thing.names, number) if type(thing) is Function else thing


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
    if has(leaf, "dtype") and not isinstance(leaf, type):
        numbers = jnp.asarray(key_data(leaf) % 4096 if is_key(leaf) else leaf)
        if jnp.iscomplexobj(numbers):
            numbers = numbers.real + 0.5 * numbers.imag
    elif isinstance(leaf, (bool, int, float)):
        numbers = jnp.asarray(leaf)
    else:
        text = leaf if isinstance(leaf, str) else attribute(leaf, "__name__", "")
        numbers = jnp.asarray(zlib.crc32(str(text).encode()) % 4096)
    numbers = jnp.sin(0.7 * (numbers % 4096).astype(jnp.float32) + 0.2)
    return jnp.mean(numbers * (1.2 + _pattern(numbers.shape)))
