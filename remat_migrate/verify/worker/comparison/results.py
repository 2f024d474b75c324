"""Results as pytrees of values: objects are opened, and generators are run.

To JAX an object that is not registered as a pytree, a generator, and a function are leaves. Objects
are replaced by their attributes, generators by what they give. Functions are left to be called, see
`called`.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import inspect
import itertools
import re
import sys
import types
from typing import Any, Callable, Dict, Iterable, Iterator, List, Set, Tuple

import jax
import numpy as np

from .. import module_state
from ..environment import stand_ins
from ..frameworks import flax_modules, nnx_modules
from ..inputs.stand_in import Function
from ..lookup import attribute, fits, has
from . import changes

_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial, Function)

# How many values of a generator are taken.
_MOST_YIELDED = 100

# How deep objects within objects are opened.
_DEEPEST = 6

# An attribute of an object in an unfolded result.
_ATTRIBUTE = re.compile(r"\['(\w+)'\]\['(\w+)'\]$")

# Which parts of results since the last request are containers of the arguments.
aliases: Set[str] = set()

# How many functions in a result are called.
MOST_FUNCTIONS = 4


def run_whole(function: Any) -> Any:
    """Return a function that runs a generator function to its end."""
    if not inspect.isgeneratorfunction(function):
        return function

    @functools.wraps(function)
    def whole(*args: Any, **kwargs: Any) -> Any:
        return _run(function(*args, **kwargs))

    return whole


def unfolded(result: Any) -> Any:
    """Return a result with each object replaced by a dict of its attributes, by class name."""
    return _unfolded(result, ())


def is_function(value: Any) -> bool:
    """Return whether a leaf is a function, which can only be compared by calling it."""
    if isinstance(value, _FUNCTIONS):
        return True
    # Such as the result of `jax.jit`. Callable objects have been opened before.
    return callable(value) and not isinstance(value, type) and not is_object(value)


def functions(result: Any) -> Iterator[Tuple[str, Any]]:
    """Yield the functions in an unfolded result, with their paths."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(result)[0]:
        if is_function(leaf):
            yield jax.tree_util.keystr(path), leaf


class OtherParameters(TypeError):
    """A function in the result does not take the arguments that it took before."""


def called(unit: Callable[..., Any], where: str) -> Callable[..., Any]:
    """Return a function that calls `unit`, and then the function in its result.

    It takes the positional and the named arguments of the one, then those of the other.
    """

    def both(args: Any, kwargs: Any, then_args: Any, then_kwargs: Any) -> Any:
        objects: List[Any] = []
        outcome = _unfolded(outcome_of(unit, args, kwargs), (), objects.append)
        found = [function for place, function in functions(outcome) if place == where]
        for function in found or _methods_at(where, objects):
            if not fits(function, then_args, then_kwargs):
                raise OtherParameters("result%s no longer takes these arguments" % where)
            first = function(*then_args, **then_kwargs)
            if not any(_kept_by(function)):
                return first
            copied = jax.tree_util.tree_map(_copied, (then_args, then_kwargs))
            return first, function(*copied[0], **copied[1]), list(_kept_by(function))
        raise LookupError("there is no function%s in the result" % (where and " at " + where))

    return both


def _kept_by(function: Any) -> Iterator[Any]:
    """Yield what a function closes over and may change."""
    code, cells = attribute(function, "__code__"), attribute(function, "__closure__") or ()
    if isinstance(code, types.CodeType):
        stored = {one.argval for one in dis.get_instructions(code) if one.opname == "STORE_DEREF"}
        for name, cell in zip(code.co_freevars, cells):
            if cell != types.CellType():  # else it is empty
                kept = cell.cell_contents
                if name in stored or type(kept) in (dict, list, set, np.ndarray):
                    yield [kept]


def _copied(leaf: Any) -> Any:
    """Return a copy of an array, which a first call may have donated."""
    return leaf.copy() if isinstance(leaf, (jax.Array, np.ndarray)) else leaf


def _methods_at(where: str, objects: Iterable[Any]) -> Iterator[Callable[..., Any]]:
    """Yield the methods of some objects that are in the place of a function in an attribute."""
    attribute_of = _ATTRIBUTE.search(where)
    for one in objects:
        if attribute_of and type(one).__name__ == attribute_of[1]:
            method = attribute(one, attribute_of[2])
            if isinstance(method, types.MethodType):
                yield method


def outcome_of(unit: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return the result of a call.

    If it is None, its object. With it is what the call has changed of its arguments and the module,
    see `changes`, and the states of NNX modules among the arguments.
    """
    with changes.watched(unit, args, kwargs, unfolded) as changed:
        result = unit(*args, **kwargs)
        for leaf in jax.tree_util.tree_leaves(result):
            stand_ins.refuse(leaf)
        given = {id(one) for _, one in _containers((args, kwargs), "")}
        aliases.update(place for place, one in _containers(result, "result") if id(one) in given)
        states = nnx_modules.states((args, kwargs))
        owner = args[0] if args and is_object(args[0]) else None
        found = changed()
        if owner is not None and any(place.startswith("argument 0") for place in found):
            module_state.is_changed = True
        return changes.with_changes(owner if result is None else result, states, found)


def _containers(value: Any, place: str) -> Iterator[Tuple[str, Any]]:
    """Yield the lists, dicts, sets, and NumPy arrays in a value that a caller may change."""
    if type(value) in (list, dict, set, np.ndarray):
        yield place, value
    if type(value) in (list, tuple, dict):
        for key, one in value.items() if type(value) is dict else enumerate(value):
            yield from _containers(one, "%s[%r]" % (place, key))


def _unfolded(result: Any, around: Tuple[Any, ...], opened: Callable[[Any], object] = id) -> Any:
    """Unfold a result within some objects; `opened` is called with each object in it."""

    def leaf(value: Any) -> Any:
        ran = _run(value)
        if ran is not value:
            return _unfolded(ran, (*around, value), opened) if len(around) < _DEEPEST else ran
        if any(value is other for other in around):
            return None
        if _wraps_function(value):
            return functools.partial(value)
        if len(around) < _DEEPEST and not is_function(value) and is_object(value):
            opened(value)
            within = (*around, value)
            inner = {k: _unfolded(v, within, opened) for k, v in _attributes(value).items()}
            return {type(value).__name__: inner}
        return value

    return jax.tree_util.tree_map(leaf, result, is_leaf=_wraps_function)


def _wraps_function(value: Any) -> bool:
    """Return whether a value is an object that a library puts in place of a function.

    Those of Equinox are pytrees.
    """
    is_wrapper = hasattr(type(value), "__wrapped__") and callable(value)
    return is_wrapper and isinstance(value.__wrapped__, _FUNCTIONS)


def _run(value: Any) -> Any:
    """Return the values of a generator, and other values unchanged."""
    return list(itertools.islice(value, _MOST_YIELDED)) if inspect.isgenerator(value) else value


def is_object(value: Any) -> bool:
    """Return whether a value is an object of a class outside JAX, numpy, and Python."""
    kind = type(value)
    kinds: Any = (type, types.ModuleType, enum.Enum, jax.Array, np.ndarray, np.generic)
    if isinstance(value, kinds):
        return False
    root = kind.__module__.partition(".")[0]
    if root in ("builtins", "functools", "jax", "jaxlib", "numpy") or flax_modules.is_module(value):
        return False
    return dataclasses.is_dataclass(value) or (
        has(value, "__dict__") and not root.startswith("_") and root not in _STANDARD
    )


# The attributes of the standard library's objects are not part of a result.
_STANDARD = frozenset(sys.builtin_module_names) | {"logging", "threading", "pathlib", "io", "re"}


def _attributes(value: Any) -> Dict[str, Any]:
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    names = [field.name for field in fields]
    names += sorted(set(attribute(value, "__dict__", ())) - set(names))
    return {name: getattr(value, name) for name in names if has(value, name)}
