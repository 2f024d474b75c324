"""Describe calls: those of one kind differ only in the numbers that they pass."""

from __future__ import annotations

import enum
import itertools
import re
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from ..inputs.candidates import is_positive
from ..lookup import attribute

# Limits on the leaves of one argument, the text of a leaf, and the flags that are shown.
_MOST_LEAVES = 20000
_LONGEST_TEXT = 200
_MOST_FLAGS = 4

_ARRAYS = (jax.Array, np.ndarray)
_NUMBERS = (int, float, complex, np.generic)
# Their text is the same in every process.
_SHOWN = (bool, str, bytes, type(None), enum.Enum, slice, range, np.dtype, type, frozenset)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_LAST_NAME = re.compile(r"(\w+)\W*$")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_CONTEXT = "its context"


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
    for path, leaf in _leaves({**named, _CONTEXT: context}, kind):
        if isinstance(leaf, _ARRAYS):
            weak = getattr(leaf, "weak_type", None)
            kind.append(f"{path}: {attribute(leaf, 'dtype')}{attribute(leaf, 'shape')}{weak}")
            name = _LAST_NAME.search(path)
            if name and is_positive(name.group(1)):
                positive.add(id(leaf))
        elif isinstance(leaf, _NUMBERS) and not isinstance(leaf, bool):
            kind.append(f"{path}: {type(leaf).__name__}")
            numbers.append(f"{path}: {leaf}")
        else:
            kind.append(f"{path}: {_text(leaf)}")
            if isinstance(leaf, bool) and not path.startswith(_CONTEXT):
                flags.append(f"{path}={leaf}")
    return Call(
        "\n".join(kind), "\n".join(numbers), ", ".join(flags[:_MOST_FLAGS]), frozenset(positive)
    )


def _leaves(named: dict[str, Any], structures: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of values with their paths; add the structures of the values."""
    for name, value in named.items():
        try:
            pairs, tree = jax.tree_util.tree_flatten_with_path(value)
        except Exception:  # keys without an order, or a custom flattening
            yield name, value
            continue
        structures.append(_ADDRESS.sub("", str(tree)))
        for place, leaf in itertools.islice(pairs, _MOST_LEAVES):
            yield name + jax.tree_util.keystr(place), leaf


def _text(value: Any) -> str:
    """Describe a leaf that is neither a number nor an array, an object by its plain attributes."""
    if isinstance(value, _SHOWN):
        return repr(value)[:_LONGEST_TEXT]
    kind = value if isinstance(value, _FUNCTIONS) else type(value)
    held = attribute(value, "__dict__", {})
    plain = [(k, v) for k, v in held.items() if isinstance(v, _SHOWN)] if held else []
    return f"{kind.__module__}.{kind.__qualname__} {plain}"[:_LONGEST_TEXT]
