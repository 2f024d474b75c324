"""Call a function on abstract arrays, where only some of its arguments are arrays."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

import jax
import numpy as np

ARRAYS = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)


def split(tree: Any) -> Tuple[List[Any], Callable[[List[Any]], Any]]:
    """Return the array leaves of a tree, and a function that rebuilds it from other arrays."""
    leaves, structure = jax.tree_util.tree_flatten(tree)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, ARRAYS)]

    def join(arrays: List[Any]) -> Any:
        filled = list(leaves)
        for i, array in zip(places, arrays):
            filled[i] = array
        return jax.tree_util.tree_unflatten(structure, filled)

    return [leaves[i] for i in places], join


def has_abstract(tree: Any) -> bool:
    """Return whether some leaf of a tree is a `jax.ShapeDtypeStruct`."""
    return any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in split(tree)[0])


def abstractly(function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """Return the result of a function as shapes; non-array arguments are passed unchanged.

    What it returns must consist of arrays and Python numbers. Raises what the function raises.
    """
    arrays, join = split((args, kwargs))

    def of_arrays(given: List[Any]) -> Any:
        positional, named = join(given)
        return function(*positional, **named)

    return jax.eval_shape(of_arrays, arrays)


def evaluated(function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """Return the result of a function, as shapes if some argument is abstract."""
    if has_abstract((args, kwargs)):
        return abstractly(function, args, kwargs)
    return function(*args, **kwargs)


def runs(function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> bool:
    """Return whether a function can be traced on these arguments."""
    arrays, join = split((args, kwargs))

    def of_arrays(given: List[Any]) -> None:
        positional, named = join(given)
        function(*positional, **named)

    try:
        jax.eval_shape(of_arrays, arrays)
    except Exception:  # the user's function, perhaps in a wrong context
        return False
    return True
