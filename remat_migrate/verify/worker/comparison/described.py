"""Describe the arrays that a unit is called with: `x: float32[2,4,8]`."""

from __future__ import annotations

from typing import Any, Dict, List

import jax
import numpy as np

from ..lookup import named_arguments

# An argument with more arrays than these is described by their number and size.
_MOST_ARRAYS = 4


def arrays_of(function: Any, case: Dict[str, Any]) -> List[str]:
    """Return the name, dtype and shape of each array among the arguments of a case."""
    found: List[str] = []
    named = named_arguments(function, case["args"], case["kwargs"])
    if case.get("then"):
        named["argument of the result"] = case["then"]["args"]
    for name, value in named.items():
        pairs = jax.tree_util.tree_flatten_with_path(value)[0]
        arrays = [
            (name + jax.tree_util.keystr(path), leaf)
            for path, leaf in pairs
            if isinstance(leaf, (jax.Array, np.ndarray))
        ]
        if len(arrays) > _MOST_ARRAYS:
            size = sum(int(leaf.size) for _, leaf in arrays)
            found.append("%s: %d arrays, %d elements" % (name, len(arrays), size))
        else:
            found += ["%s: %s%s" % (at, leaf.dtype, _shape(leaf)) for at, leaf in arrays]
    return found


def _shape(array: Any) -> str:
    return "[%s]" % ",".join(map(str, array.shape))
