"""Proxies for callables other than plain functions: jitted functions, partials, modules."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

# Special methods of the proxy itself.
_OWN = frozenset(["__set__", "__delete__", "__set_name__", "__del__", "__class_getitem__"])


class Recorded:
    """A callable that records its calls and otherwise behaves like the callable it wraps."""

    __slots__ = (
        "__weakref__",
        "_remat_migrate_identity",
        "_remat_migrate_of",
        "_remat_migrate_run",
    )

    def __init__(self, function: Any, run: Callable[..., Any], identity: str) -> None:
        object.__setattr__(self, "_remat_migrate_of", function)
        object.__setattr__(self, "_remat_migrate_run", run)
        object.__setattr__(self, "_remat_migrate_identity", identity)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, recorded."""
        return self._remat_migrate_run(self._remat_migrate_of, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        function = self._remat_migrate_of
        bind = getattr(type(function), "__get__", None)
        if bind is None:
            return self
        bound = bind(function, instance, owner)
        if bound is function or not callable(bound):
            return self if bound is function else bound
        if isinstance(bound, types.MethodType) and bound.__func__ is function:
            return types.MethodType(self, bound.__self__)
        if instance is None:
            return bound
        run = functools.partial(_run_bound, self._remat_migrate_run, instance)
        return recorded_class(bound)(bound, run, self._remat_migrate_identity)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remat_migrate_of, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._remat_migrate_of, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._remat_migrate_of, name)

    def __dir__(self) -> Any:
        return dir(self._remat_migrate_of)

    def __repr__(self) -> str:
        return repr(self._remat_migrate_of)

    def __str__(self) -> str:
        return str(self._remat_migrate_of)

    def __eq__(self, other: Any) -> Any:
        mine = self._remat_migrate_of
        return mine == (other._remat_migrate_of if type(other) is type(self) else other)

    def __hash__(self) -> int:
        return hash(self._remat_migrate_of)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._remat_migrate_of.__reduce_ex__(protocol)

    @property
    def __class__(self) -> Any:
        return type(self._remat_migrate_of)

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        self._remat_migrate_of.__class__ = kind


def _run_bound(run: Callable[..., Any], instance: Any, bound: Any, args: Any, kwargs: Any) -> Any:
    """Record a call of a bound thing as one of the unit with the instance first."""

    def call(_: Any, *rest: Any, **named: Any) -> Any:
        return bound(*rest, **named)

    return run(call, (instance, *args), kwargs)


_classes: dict[type, type] = {}


def recorded_class(function: Any) -> Any:
    """Return the proxy class for a callable, with the special methods of its type."""
    kind = type(function)
    if kind not in _classes:
        special = {
            name: _forwarding(name)
            for name in dir(kind)
            if _is_special(name) and callable(getattr(kind, name, None))
        }
        made = type("Recorded", (Recorded,), {"__slots__": (), **special})
        _classes[kind] = made
        _register_pytree(function, made)
    return _classes[kind]


def _is_special(name: str) -> bool:
    """Return whether Python looks up a method on the class and `Recorded` lacks it."""
    is_own = name in _OWN or hasattr(Recorded, name)
    return name.startswith("__") and name.endswith("__") and not is_own


def _forwarding(name: str) -> Any:
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._remat_migrate_of, name)(*args, **kwargs)

    return forward


def _register_pytree(function: Any, made: Any) -> None:
    """Register the proxy of a callable that is a pytree, such as Equinox's jitted functions."""
    jax = sys.modules.get("jax")
    if jax is None or jax.tree_util.all_leaves([function]):
        return

    def flatten(value: Any) -> tuple[Any, Any]:
        return (value._remat_migrate_of,), (value._remat_migrate_run, value._remat_migrate_identity)

    def unflatten(about: Any, children: Any) -> Any:
        return made(children[0], *about)

    jax.tree_util.register_pytree_node(made, flatten, unflatten)
