"""Objects and functions to pass where nothing else says what an argument is.

They are pickled by name, so both sides of a comparison find them here.
"""

from __future__ import annotations

import types
from typing import Any, Tuple

import jax
import jax.numpy as jnp


class Settings(types.SimpleNamespace):
    """An object without arrays among its attributes; hashable by content, so it can be static."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(vars(self).items())))


class Record(types.SimpleNamespace):
    """An object whose attributes are arrays; registered as a pytree."""


def _flatten(record: Record) -> Tuple[Tuple[Any, ...], Tuple[str, ...]]:
    names = tuple(sorted(vars(record)))
    return tuple(getattr(record, name) for name in names), names


def _unflatten(names: Tuple[str, ...], children: Any) -> Record:
    return Record(**dict(zip(names, children)))


jax.tree_util.register_pytree_node(Record, _flatten, _unflatten)


def mixture(*args: Any, **kwargs: Any) -> Any:
    """Return a smooth function of all its arrays, in the shape of the last positional one."""
    arrays = [
        leaf
        for leaf in jax.tree_util.tree_leaves((kwargs, args))
        if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    ]
    if not arrays:
        return jnp.float32(0.5)
    total = sum(jnp.mean(leaf) for leaf in arrays[:-1])
    return jnp.tanh(arrays[-1]) + total
