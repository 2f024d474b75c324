"""Call a function of arrays and other values on abstract arrays, or compiled as one program."""

from __future__ import annotations

import contextlib
import copy
import types
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Tuple

import jax
import numpy as np

from ..work import TracedOperations

# Compiling more operations as one program takes longer than compiling each of the different ones.
_MOST_COMPILED = 2000


class PureCall(NamedTuple):
    """A plain function with its arguments, labelled "", "init", or "apply"."""

    label: str
    function: Callable[..., Any]
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]


def _of_arrays(
    function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]
) -> Tuple[Callable[[List[Any]], Any], List[Any]]:
    """Return a function as one of the arrays among its arguments, and these."""
    arrays, join = split((args, kwargs))

    def of_arrays(given: List[Any]) -> Any:
        positional, named = join(given)
        return function(*positional, **named)

    return of_arrays, arrays


def is_array(leaf: Any) -> bool:
    """Return whether a leaf is an array, perhaps abstract."""
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct))


def split(
    tree: Any, is_chosen: Callable[[Any], bool] = is_array
) -> Tuple[List[Any], Callable[[List[Any]], Any]]:
    """Return the chosen leaves of a tree, and a function that rebuilds it from others."""
    leaves, structure = jax.tree_util.tree_flatten(tree)
    places = [i for i, leaf in enumerate(leaves) if is_chosen(leaf)]

    def join(arrays: List[Any]) -> Any:
        filled = list(leaves)
        for i, array in zip(places, arrays):
            filled[i] = array
        return jax.tree_util.tree_unflatten(structure, filled)

    return [leaves[i] for i in places], join


def mapped(value: Any, is_part: Callable[[Any], bool], change: Callable[[Any], Any]) -> Any:
    """Return a value with each such part of it changed; containers without any are not copied.

    Looks into tuples, lists and dicts, and into the objects of bound methods.
    """
    if is_part(value):
        return change(value)
    if type(value) is types.MethodType:
        owner = mapped(value.__self__, is_part, change)
        if owner is value.__self__:
            return value
        # Flax looks for a wrapped method on the class.
        named = is_part(owner)
        return getattr(owner, value.__name__) if named else types.MethodType(value.__func__, owner)
    if isinstance(value, Mapping):
        pairs = {key: mapped(part, is_part, change) for key, part in value.items()}
        if all(pairs[key] is part for key, part in value.items()):
            return value
        if not isinstance(value, dict):
            frozen: Any = type(value)  # Flax freezes the dicts in its modules
            return frozen(pairs)
        result = copy.copy(value)
        result.update(pairs)
        return result
    if isinstance(value, (tuple, list)):
        parts = [mapped(part, is_part, change) for part in value]
        if all(new is old for new, old in zip(parts, value)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def parts_of(value: Any, is_part: Callable[[Any], bool]) -> List[Any]:
    """Return the parts of a value that `mapped` would change."""
    found: List[Any] = []

    def note(part: Any) -> Any:
        found.append(part)
        return part

    mapped(value, is_part, note)
    return found


def has_abstract(tree: Any) -> bool:
    """Return whether some leaf of a tree is a `jax.ShapeDtypeStruct`."""
    return any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in split(tree)[0])


def abstractly(function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """Return the result of a function as shapes; non-array arguments are passed unchanged.

    What it returns must consist of arrays and Python numbers. Raises what the function raises.
    """
    return jax.eval_shape(*_of_arrays(function, args, kwargs))


def evaluated(
    function: Callable[..., Any],
    args: Tuple[Any, ...],
    kwargs: Dict[str, Any],
    shapes_do: bool = False,
) -> Any:
    """Return the result of a function, as shapes if some argument is abstract.

    If `shapes_do`, it is returned as shapes unless Python needs its values.
    """
    if has_abstract((args, kwargs)):
        return abstractly(function, args, kwargs)
    if shapes_do:
        with contextlib.suppress(Exception):  # running it reports the reason
            return abstractly(function, args, kwargs)
    of_arrays, arrays = _of_arrays(function, args, kwargs)
    try:
        return compiled(of_arrays, arrays)
    except NotCompiled:
        return of_arrays(arrays)


class NotCompiled(Exception):
    """A function must run as it is: Python needs its values, or it is too large."""


def compiled(function: Callable[[List[Any]], Any], arrays: List[Any]) -> Any:
    """Return the result of a function of arrays, compiled as one program.

    Compiling each operation on its own takes several times as long. Leaves that are not arrays are
    those that the function returned while it was traced.

    Raises:
        NotCompiled: it cannot be traced, or has too many operations.
    """
    kept: List[Any] = []

    def traced(given: List[Any]) -> List[Any]:
        traced_operations = TracedOperations()
        with traced_operations.counted():
            leaves, tree = jax.tree_util.tree_flatten(function(given))
        if traced_operations.count > _MOST_COMPILED:
            raise NotCompiled
        kept[:] = leaves, tree
        return [leaf for leaf in leaves if isinstance(leaf, jax.core.Tracer)]

    try:
        computed = iter(jax.jit(traced)(arrays))
    except Exception as error:
        raise NotCompiled from error
    leaves, tree = kept
    filled = [next(computed) if isinstance(leaf, jax.core.Tracer) else leaf for leaf in leaves]
    return jax.tree_util.tree_unflatten(tree, filled)


def runs(function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> bool:
    """Return whether a function can be traced on these arguments."""
    of_arrays, arrays = _of_arrays(function, args, kwargs)

    def without_result(given: List[Any]) -> None:
        of_arrays(given)

    try:
        jax.eval_shape(without_result, arrays)
    except Exception:  # the user's function, perhaps in a wrong context
        return False
    return True
