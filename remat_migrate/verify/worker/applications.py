"""Marks what edited checkpoints return in a program that is traced.

A caller may drop these values, or test no more than their shapes. So each is marked, see
`jax_internals.mark`.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator, Optional, Set

# Before the name of the checkpoint in the parameter of a mark.
MARK = "remat_migrate returned by "

_marked: Optional[Set[str]] = None


@contextlib.contextmanager
def marking(is_marking: bool) -> Iterator[Set[str]]:
    """Whether to mark what edited checkpoints return in programs that are traced meanwhile.

    Gives the checkpoints whose values were marked.
    """
    global _marked
    before, _marked = _marked, set() if is_marking else None
    try:
        yield set() if _marked is None else _marked
    finally:
        _marked = before


def note(checkpoint: str, result: Any) -> Any:
    """Mark what an edited checkpoint returned, and return it."""
    if _marked is None:
        return result
    from . import jax_internals  # imports JAX

    jax = sys.modules["jax"]
    try:
        leaves = jax.tree_util.tree_leaves(result)
    except (TypeError, ValueError):
        return result  # such as a dict with keys that have no order
    for leaf in filter(_is_number, leaves):
        _marked.add(checkpoint)
        jax_internals.mark(jax.numpy.asarray(leaf), MARK + checkpoint)
    return result


def _is_number(leaf: Any) -> bool:
    """Return whether a leaf is an array, or what JAX makes one of."""
    jax, numpy = sys.modules["jax"], sys.modules["numpy"]
    if isinstance(leaf, (numpy.ndarray, numpy.generic)):
        return any(jax.numpy.issubdtype(leaf.dtype, kind) for kind in (numpy.number, numpy.bool_))
    return isinstance(leaf, (jax.Array, bool, float, complex))
