"""What distinguishes one call of a unit from others: structure, shapes, flags, and numbers.

Pytrees, partials, bound methods, and the attributes of plain objects are traversed; everything else
is a leaf.
"""

from __future__ import annotations

import enum
import functools
import itertools
import re
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from ..frameworks import flax_modules
from ..inputs.candidates import is_positive
from ..lookup import attribute

# Limits on the depth of objects within objects, and on the leaves of one call.
_DEEPEST = 4
_MOST_LEAVES = 20000
_LONGEST_TEXT = 200
_MOST_FLAGS = 4

_ARRAYS = (jax.Array, np.ndarray)
_NUMBERS = (int, float, complex, np.generic)
# Their text is the same in every process.
_SHOWN = (bool, str, bytes, type(None), enum.Enum, slice, range, np.dtype, type, frozenset)
# Objects of these packages are leaves: devices, meshes, loggers, open files.
# fmt: off
_CLOSED = frozenset([
    "_io", "_thread", "builtins", "io", "jax", "jaxlib", "logging", "ml_dtypes",
    "multiprocessing", "numpy", "pandas", "queue", "random", "re", "socket", "subprocess",
    "tensorflow", "threading", "torch", "pytest", "_pytest",
])
# fmt: on
_LAST_NAME = re.compile(r"(\w+)\W*$")


class Call(NamedTuple):
    """A call.

    Attributes:
        kind: its structure, shapes, and values that are neither numbers nor arrays.
        numbers: its Python numbers.
        about: the Python bools among its arguments: `is_training=True`.
        positive: the ids of the arrays whose names suggest positive entries.
    """

    kind: str
    numbers: str
    about: str
    positive: frozenset[int]


def described(named: dict[str, Any], context: Any) -> Call:
    """Describe a call by the arguments of its parameters, and by its context."""
    kind: list[str] = []
    numbers: list[str] = []
    flags: list[str] = []
    positive: set[int] = set()
    leaves = itertools.chain(
        *(_leaves(value, name) for name, value in named.items()), _leaves(context, "its context")
    )
    for path, leaf, is_state in itertools.islice(leaves, _MOST_LEAVES):
        if isinstance(leaf, _ARRAYS):
            weak = getattr(leaf, "weak_type", None)
            kind.append(f"{path}: {attribute(leaf, 'dtype')}{attribute(leaf, 'shape')}{weak}")
            name = _LAST_NAME.search(path)
            if name and is_positive(name.group(1)):
                positive.add(id(leaf))
        elif isinstance(leaf, _NUMBERS) and not isinstance(leaf, bool):
            kind.append(f"{path}: {type(leaf).__name__}")
            if not (is_state and isinstance(leaf, float)):  # floats in objects are clocks
                numbers.append(f"{path}: {leaf}")
        else:
            kind.append(f"{path}: {_text(leaf)}")
            if isinstance(leaf, bool) and not path.startswith("its context"):
                flags.append(f"{path}={leaf}")
    about = ", ".join(flags[:_MOST_FLAGS])
    return Call("\n".join(kind), "\n".join(numbers), about, frozenset(positive))


def _leaves(
    value: Any, path: str, depth: int = 0, above: tuple[int, ...] = ()
) -> Iterator[tuple[str, Any, bool]]:
    """Yield the leaves of a value: path, leaf, and whether it is an attribute of an object."""
    try:
        pairs = jax.tree_util.tree_flatten_with_path(value)[0]
    except Exception:  # keys without an order, or a custom flattening
        pairs = [((), value)]
    for place, leaf in pairs:
        where = path + jax.tree_util.keystr(place)
        state = {} if depth == _DEEPEST or id(leaf) in above else _state(leaf)
        if state:
            for name, part in state.items():
                yield from _leaves(part, f"{where}.{name}", depth + 1, (*above, id(leaf)))
        else:
            yield where, leaf, depth > 0


def _state(value: Any) -> dict[str, Any]:
    """Return the attributes of an object of the program or of an open library."""
    if isinstance(value, functools.partial):
        return {"func": value.func, "args": value.args, **value.keywords}
    if isinstance(value, types.MethodType):
        return {"__self__": value.__self__}
    if flax_modules.is_module(value):
        return dict(flax_modules.fields(value))
    kind = type(value)
    closed = kind.__module__.partition(".")[0] in _CLOSED or isinstance(value, enum.Enum | type)
    if closed or callable(attribute(value, "__next__")):
        return {}
    state = attribute(value, "__dict__", {})
    return dict(state) if isinstance(state, dict) else {}


def _text(value: Any) -> str:
    """Describe a leaf that is neither a number nor an array."""
    if isinstance(value, _SHOWN):
        return repr(value)[:_LONGEST_TEXT]
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{type(value).__module__}.{type(value).__qualname__}"
