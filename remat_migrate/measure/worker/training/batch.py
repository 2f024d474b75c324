"""Other batch sizes of a target, for targets whose arguments have a batch axis."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Tuple

import jax

from ..entry import NONE, Entry, Unfit, shape_of
from ..inputs import Arguments
from ..instruments.liveness import size


def with_batch(entry: Entry, batch: int) -> Tuple[int, Arguments]:
    """Return the batch size of an entry, and its arguments with another one.

    The batch is the first axis of arguments that are neither differentiated nor, in a training
    step, returned with the same shapes. If such arguments differ in their first axis, the size that
    most bytes have is the batch size.

    Raises:
        Unfit: there is no such argument.
    """
    args, kwargs = entry.arguments()
    by_size: Dict[int, List[Any]] = {}
    for argument in _data(entry, args, kwargs):
        for leaf in _shapes(argument):
            if leaf.shape:
                by_size.setdefault(leaf.shape[0], []).append(leaf)
    if not by_size:
        raise Unfit(
            "no argument has a batch axis: give the function that returns the arguments a parameter"
            " `batch`"
        )
    now = max(by_size, key=lambda one: sum(map(size, by_size[one])))
    chosen = set(map(id, by_size[now]))

    def scaled(leaf: Any) -> Any:
        if id(leaf) not in chosen:
            return leaf
        sharding = getattr(leaf, "sharding", None)
        return shape_of((batch, *leaf.shape[1:]), leaf.dtype, sharding=sharding)

    return now, jax.tree_util.tree_map(scaled, (args, kwargs))


def _data(entry: Entry, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> List[Any]:
    """Return the arguments that are neither parameters nor state."""
    if entry.how.by != NONE:
        chosen = {number % len(args) for number in entry.how.argnums}
        others = [argument for number, argument in enumerate(args) if number not in chosen]
        return [*others, *kwargs.values()]
    returned = _types(jax.eval_shape(entry.differentiated, *entry.shapes))
    return [one for one in (*args, *kwargs.values()) if _types(one) - returned]


def _types(tree: Any) -> Counter[Any]:
    return Counter((leaf.shape, leaf.dtype) for leaf in _shapes(tree))


def _shapes(tree: Any) -> List[Any]:
    leaves = jax.tree_util.tree_leaves(tree)
    return [leaf for leaf in leaves if isinstance(leaf, jax.ShapeDtypeStruct)]
