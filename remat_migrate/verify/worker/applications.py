"""Notes what edited checkpoints return while a case runs.

A caller may drop these values, or test no more than their shapes. So they are compared, too: arrays
as further results, and values that are traced by what computes them. In a program, each is
marked, see `jax_internals.mark`.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator, List, NamedTuple, Optional, Set

# Before the name of the checkpoint in the parameter of a mark.
MARK = "remat_migrate returned by "
# Loops may call a checkpoint any number of times.
_MOST = 200
_MOST_ENTRIES = 10_000_000


class Returned(NamedTuple):
    """An array that an edited checkpoint returned.

    Attributes:
        checkpoint: what it wraps, and its line.
        array: the array, or a number.
    """

    checkpoint: str
    array: Any


_collected: Optional[List[Returned]] = None
_marked: Optional[Set[str]] = None
_moved: Optional[List[str]] = None


@contextlib.contextmanager
def collecting() -> Iterator[List[Returned]]:
    """Give the arrays that edited checkpoints return meanwhile, in order."""
    global _collected
    before, _collected = _collected, []
    try:
        yield _collected
    finally:
        _collected = before


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


@contextlib.contextmanager
def moving() -> Iterator[List[str]]:
    """Change what edited checkpoints return meanwhile, to see whether any result depends on it.

    Gives the checkpoints whose values were changed.
    """
    global _moved
    before, _moved = _moved, []
    try:
        # Nothing is used that was compiled before: JAX caches it by a context that this option,
        # which only warns, is a part of.
        with sys.modules["jax"].numpy_rank_promotion("warn"):
            yield _moved
    finally:
        _moved = before


def note(checkpoint: str, result: Any) -> Any:
    """Note what an edited checkpoint returned, and return it."""
    if _collected is None and _moved is None and _marked is None:
        return result
    from . import jax_internals  # imports JAX

    jax, numpy = sys.modules["jax"], sys.modules["numpy"]
    try:
        leaves, tree = jax.tree_util.tree_flatten(result)
    except (TypeError, ValueError):
        return result  # such as a dict with keys that have no order
    if _moved is not None:
        moved = [leaf * 2 + 1 if _can_move(leaf) else leaf for leaf in leaves]
        _moved.extend(checkpoint for leaf in leaves if _can_move(leaf))
        return jax.tree_util.tree_unflatten(tree, moved)
    for leaf in leaves:
        if not _is_number(leaf):
            continue
        if _marked is not None:
            _marked.add(checkpoint)
            array = jax.numpy.asarray(leaf)
            jax_internals.mark(array, MARK + checkpoint)
        elif _collected is not None and _has_room(_collected):
            value = _untraced(leaf)
            if _is_number(value):
                kept = numpy.copy(value) if isinstance(value, numpy.ndarray) else value
                _collected.append(Returned(checkpoint, kept))
    return result


def _has_room(collected: List[Returned]) -> bool:
    entries = sum(sys.modules["numpy"].size(each.array) for each in collected)
    return len(collected) < _MOST and entries < _MOST_ENTRIES


def _is_number(leaf: Any) -> bool:
    """Return whether a leaf is an array, or what JAX makes one of."""
    jax, numpy = sys.modules["jax"], sys.modules["numpy"]
    if isinstance(leaf, (numpy.ndarray, numpy.generic)):
        return any(jax.numpy.issubdtype(leaf.dtype, kind) for kind in (numpy.number, numpy.bool_))
    return isinstance(leaf, (jax.Array, bool, float, complex))


def _can_move(leaf: Any) -> bool:
    jax = sys.modules["jax"]
    number = jax.numpy.number
    return isinstance(leaf, jax.Array) and bool(jax.numpy.issubdtype(leaf.dtype, number))


def _untraced(leaf: Any) -> Any:
    """Return the value that a tracer of derivatives or `vmap` stands for; others have none."""
    while isinstance(leaf, sys.modules["jax"].core.Tracer):
        leaf = getattr(leaf, "primal", getattr(leaf, "val", None))
    return leaf
