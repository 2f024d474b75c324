"""Traverse the arguments and results of calls: list their leaves, or copy them.

Containers, JAX pytrees, partials, bound methods, and plain objects are traversed; everything else
is a leaf. JAX is used only if the program has imported it.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..frameworks import flax_modules, pure_functions
from ..lookup import attribute, has
from ..transfer.placeholders import HostArray, Slot

# Limits on the depth of objects within objects, and on the leaves of one value.
DEEPEST_STATE = 4
MOST_NODES = 20000

_SCALARS = (bool, int, float, complex, str, bytes, type(None))
_NAMED = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
    types.GeneratorType,
    types.CoroutineType,
    enum.Enum,
    HostArray,
    Slot,
)
# Objects of these packages are leaves: devices, meshes, loggers, open files.
# fmt: off
_CLOSED = frozenset([
    "_io", "_thread", "builtins", "io", "jax", "jaxlib", "logging", "ml_dtypes",
    "multiprocessing", "numpy", "pandas", "queue", "random", "re", "socket", "subprocess",
    "tensorflow", "threading", "torch", "pytest", "_pytest",
])
# fmt: on

Rebuild = Callable[[List[Any]], Any]


class Leaf(NamedTuple):
    """A leaf of a value. `state`: it is an attribute of a plain object, which may be stale."""

    path: str
    value: Any
    state: bool


class Parts(NamedTuple):
    """The children of a value."""

    names: List[str]
    values: List[Any]
    rebuild: Rebuild
    state: bool = False


class Truncated:
    """Replaces a part that is not traversed: too deep, too large, or a cycle."""


def is_tracer(value: Any) -> bool:
    """Return whether a value is a tracer."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.core.Tracer)


def has_tracer(value: Any) -> bool:
    """Return whether a pytree may hold a tracer; a fast check."""
    jax = sys.modules.get("jax")
    try:
        return jax is not None and any(map(is_tracer, jax.tree_util.tree_leaves(value)))
    except Exception:  # keys without an order, or a custom flattening
        return True


def is_array(value: Any) -> bool:
    """Return whether a value is a numpy or JAX array, a numpy scalar, or a tracer."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return True
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, (jax.Array, jax.core.Tracer))


def leaves(value: Any, path: str) -> List[Leaf]:
    """Return the leaves of a value in order with their paths, at most `MOST_NODES`."""
    found: List[Leaf] = []
    _collect(value, path, False, 0, set(), found)
    return found


def _collect(
    value: Any, path: str, state: bool, depth: int, above: Set[int], found: List[Leaf]
) -> None:
    if len(found) >= MOST_NODES:
        return
    parts = None if id(value) in above or depth > DEEPEST_STATE else parts_of(value)
    if parts is None:
        cut = id(value) in above
        found.append(Leaf(path, Truncated if cut else value, state))
        return
    above.add(id(value))
    deeper = depth + 1 if parts.state else depth
    for name, part in zip(parts.names, parts.values):
        _collect(part, path + name, state or parts.state, deeper, above, found)
    above.discard(id(value))


def replaced(value: Any, replace: Callable[[Any], Any]) -> Any:
    """Return a copy of a value with `replace(leaf)` for each leaf.

    Containers are always copied, plain objects only where a leaf below them was replaced.
    """
    return _replaced(value, replace, 0, set())


def _replaced(value: Any, replace: Callable[[Any], Any], depth: int, above: Set[int]) -> Any:
    parts = None if id(value) in above or depth > DEEPEST_STATE else parts_of(value)
    if parts is None:
        return replace(value)
    above.add(id(value))
    deeper = depth + 1 if parts.state else depth
    new = [_replaced(part, replace, deeper, above) for part in parts.values]
    above.discard(id(value))
    if parts.state and all(a is b or _same(a, b) for a, b in zip(new, parts.values)):
        return value
    return parts.rebuild(new)


def _same(new: Any, old: Any) -> bool:
    """Return whether a copied container holds the same objects."""
    if type(new) is not type(old):
        return False
    if isinstance(new, (list, tuple)):
        return len(new) == len(old) and all(a is b or _same(a, b) for a, b in zip(new, old))
    if isinstance(new, dict):
        return list(new) == list(old) and _same(list(new.values()), list(old.values()))
    return False


def parts_of(value: Any) -> Optional[Parts]:
    """Return the children of a value; None for a leaf."""
    if isinstance(value, _SCALARS + _NAMED) or is_array(value):
        return None
    kind = type(value)
    if kind in (list, tuple):
        names = ["[{}]".format(i) for i in range(len(value))]
        return Parts(names, list(value), kind)
    if kind is dict:
        keys = list(value)
        names = ["[{}]".format(_key(key)) for key in keys]
        return Parts(names, list(value.values()), lambda new: dict(zip(keys, new)))
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        fields = list(kind._fields)
        return Parts(["." + name for name in fields], list(value), lambda new: kind(*new))
    if kind is functools.partial:
        return _partial(value)
    if kind is types.MethodType:
        function = value.__func__
        return Parts([".__self__"], [value.__self__], lambda new: types.MethodType(function, *new))
    return _flax_module(value) or _pytree(value) or _object(value)


def _key(key: Any) -> str:
    return repr(key) if isinstance(key, _SCALARS) else type(key).__name__


def _partial(value: Any) -> Parts:
    return Parts(
        [".func", ".args", ".keywords"],
        [value.func, value.args, value.keywords],
        lambda new: functools.partial(new[0], *new[1], **new[2]),
    )


def _flax_module(value: Any) -> Optional[Parts]:
    """Return the fields of a linen module; its parameters are variables, held by the context."""
    if not flax_modules.is_module(value):
        return None
    names = [
        field.name
        for field in dataclasses.fields(value)
        if field.init and field.name not in ("parent", "name") and has(value, field.name)
    ]
    values = [getattr(value, name) for name in names]

    def rebuild(new: List[Any]) -> Any:
        changed = {n: a for n, a, b in zip(names, new, values) if a is not b and not _same(a, b)}
        module = pure_functions.unbound(value)
        return module.clone(**changed) if changed else module

    return Parts(["." + name for name in names], values, rebuild)


def _pytree(value: Any) -> Optional[Parts]:
    jax = sys.modules.get("jax")
    if jax is None:
        return None
    try:
        keyed, tree = jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda x: x is not value)
    except Exception:  # a custom flattening
        return None
    if len(keyed) == 1 and keyed[0][1] is value:
        return None
    names = [jax.tree_util.keystr(path) for path, _ in keyed]
    return Parts(names, [part for _, part in keyed], lambda new: _unflattened(tree, new))


def _unflattened(tree: Any, new: Sequence[Any]) -> Any:
    return sys.modules["jax"].tree_util.tree_unflatten(tree, list(new))


def _object(value: Any) -> Optional[Parts]:
    """Return the state of a plain object of the program or of an open library."""
    kind = type(value)
    if kind.__module__.partition(".")[0] in _CLOSED or callable(attribute(value, "__next__")):
        return None
    state = dict(_state(value))
    haiku = sys.modules.get("haiku")
    if haiku is not None and isinstance(value, haiku.Module):
        # Haiku counts calls and transforms here, including `hk.remat`.
        state.pop("_creation_frame_id", None)
    if not state:
        return None
    names = list(state)

    def rebuild(new: List[Any]) -> Any:
        made = copy.copy(value)
        for name, part in zip(names, new):
            object.__setattr__(made, name, part)
        return made

    return Parts(["." + name for name in names], list(state.values()), rebuild, True)


def _state(value: Any) -> List[Tuple[str, Any]]:
    own: Dict[str, Any] = attribute(value, "__dict__", {})
    found = list(own.items()) if isinstance(own, dict) else []
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if name not in ("__dict__", "__weakref__"):
                slot = kind.__dict__.get(name)
                if isinstance(slot, types.MemberDescriptorType) and has(value, name):
                    found.append((name, getattr(value, name)))
    return found
