"""What a call changes: its arguments, objects, and the data of modules.

Only what can change in place is looked at, and only the parts that are not what they were.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Callable, Collection, Dict, Iterator, Mapping, Tuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import module_state
from ..environment import projects
from ..frameworks import nnx_modules

# The names that both versions of each edited file define: what one lacks cannot be compared.
shared_names: Mapping[str, Collection[str]] = {}

_GONE = "removed"
_Parts = Dict[str, Any]


@contextlib.contextmanager
def watched(
    function: Any, args: Any, kwargs: Any, opened: Callable[[Any], Any]
) -> Iterator[Callable[[], _Parts]]:
    """Give a function that returns what has changed meanwhile, by place; then restore the module.

    Args:
        function: what is called.
        args: its positional arguments.
        kwargs: its named arguments.
        opened: returns a value as a pytree, with objects as their attributes.
    """
    before = _parts(function, args, kwargs, opened)

    def changed() -> _Parts:
        after = _parts(function, args, kwargs, opened)
        moved = {k: _readable(v) for k, v in after.items() if not _is_same(before.get(k, _GONE), v)}
        return dict(moved, **{k: _GONE for k in before if k not in after})

    with module_state.restored(function):
        yield changed


def _parts(function: Any, args: Any, kwargs: Any, opened: Callable[[Any], Any]) -> _Parts:
    """Return the parts of what a call can change in place: values by place."""
    places = {"argument %d" % i: value for i, value in enumerate(args)}
    places.update(("argument %s" % name, value) for name, value in kwargs.items())
    places.update(_shared(function))
    found = {}
    for place, value in places.items():
        if inspect.isgenerator(value) or inspect.iscoroutine(value):
            continue  # opening it would run it
        if nnx_modules.is_module_class(type(value)):
            continue  # see `nnx_modules.states`
        try:
            pairs = jax.tree_util.tree_flatten_with_path(opened(value))[0]
        except (TypeError, ValueError):
            continue  # such as a dict with keys that have no order
        for path, leaf in pairs:
            if not callable(leaf):
                leaf = leaf.copy() if type(leaf) is np.ndarray else leaf
                found[place + jax.tree_util.keystr(path)] = leaf
    return found


def _shared(function: Any) -> _Parts:
    """Return the data outside a function that both versions define, by name."""
    found = {}
    for owner in module_state.owners_of(function):
        names = shared_names.get(projects.relative(owner.file))
        for name, value in owner.data.items():
            if names is None or (owner.name or name) in names:
                found[owner.label + name] = value
    return found


def _is_same(old: Any, new: Any) -> bool:
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if type(old) is np.ndarray:
        return bool(old.dtype == new.dtype and old.tobytes() == new.tobytes())
    return isinstance(old, (bool, int, float, str, bytes)) and bool(old == new)


def _readable(leaf: Any) -> Any:
    """Return a leaf, or words for a traced value that has outlived its trace."""
    if not isinstance(leaf, jax.core.Tracer):
        return leaf
    try:
        return jnp.copy(leaf)
    except Exception:
        return "a value of an inner trace"


def with_changes(result: Any, states: Any, changed: _Parts) -> Any:
    """Return a result together with what the call has changed, if it has."""
    more: Tuple[Tuple[str, Any], ...] = (("states", states), ("changed", changed))
    held = {name: value for name, value in more if value}
    return dict(held, result=result) if held else result
