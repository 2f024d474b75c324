"""Notes what edited checkpoints return while a case runs.

A caller may drop these values, or test no more than their shapes. So they are compared, too: arrays
as further results, and values that are traced by what computes them. In a program, an equation
that returns its operand marks each: it is never removed, and belongs to the trace it is made in.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator, List, NamedTuple, Optional

# Before the name of the checkpoint in the parameter of a mark.
MARK = "remat_migrate returned by "
# Loops may call a checkpoint any number of times.
_MOST = 200


class Returned(NamedTuple):
    """An array that an edited checkpoint returned.

    Attributes:
        checkpoint: what it wraps, and its line.
        array: the array, or a number.
    """

    checkpoint: str
    array: Any


_collected: Optional[List[Returned]] = None
_is_marking = False


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
def marking(is_marking: bool) -> Iterator[None]:
    """Whether to mark what edited checkpoints return in programs that are traced meanwhile."""
    global _is_marking
    before, _is_marking = _is_marking, is_marking
    try:
        yield
    finally:
        _is_marking = before


def note(checkpoint: str, result: Any) -> None:
    """Note what an edited checkpoint returned."""
    if _collected is None and not _is_marking:
        return
    jax, numpy = sys.modules["jax"], sys.modules["numpy"]
    kinds = (jax.Array, numpy.ndarray, numpy.generic, float, int, complex)
    try:
        leaves = jax.tree_util.tree_leaves(result)
    except (TypeError, ValueError):
        return  # such as a dict with keys that have no order
    for leaf in leaves:
        if not isinstance(leaf, kinds):
            continue
        if _is_marking:
            mark: Any = sys.modules["jax._src.ad_checkpoint"]
            mark.name_p.bind(jax.numpy.asarray(leaf), name=MARK + checkpoint)
        elif _collected is not None and len(_collected) < _MOST:
            value = _untraced(leaf)
            if isinstance(value, kinds):
                kept = numpy.copy(value) if isinstance(value, numpy.ndarray) else value
                _collected.append(Returned(checkpoint, kept))


def _untraced(leaf: Any) -> Any:
    """Return the value that a tracer of derivatives or `vmap` stands for; others have none."""
    while isinstance(leaf, sys.modules["jax"].core.Tracer):
        leaf = getattr(leaf, "primal", getattr(leaf, "val", None))
    return leaf
