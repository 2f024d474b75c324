"""Containers that have every entry they are asked for.

To JAX they are pytrees of the entries requested so far.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, Iterable, List, Tuple

import jax

from . import candidates
from .node import OBJECT, Choice, Node

LIBRARIES = frozenset(
    [
        "jax",
        "jaxlib",
        "numpy",
        "flax",
        "haiku",
        "equinox",
        "optax",
        "chex",
        "einops",
        "opt_einsum",
        "ml_dtypes",
        "scipy",
    ]
)


class Ticket:
    """What a container knows of its node, in the structure of a pytree: equal only to itself."""

    def __init__(self, node: Node, search: Any) -> None:
        self.node = node
        self.search = search


def library_frame(depth: int) -> bool:
    """Return whether the caller's caller belongs to JAX or another library."""
    module = sys._getframe(depth + 1).f_globals.get("__name__", "")
    return module.partition(".")[0] in LIBRARIES


class OpenDict(Dict[Any, Any]):
    """A dictionary that has every key it is asked for."""

    def __init__(self, ticket: Ticket, entries: Iterable[Tuple[Any, Any]]) -> None:
        super().__init__(entries)
        self._ticket = ticket

    def __missing__(self, key: Any) -> Any:
        if type(key) is not str:
            raise KeyError(key)
        return self._child(key)

    def __getattr__(self, name: str) -> Any:
        """Some settings are read both ways: then they are an object, see `stand_in.Settings`."""
        ticket = self.__dict__.get("_ticket")
        if ticket is None or name.startswith("_") or library_frame(1):
            raise AttributeError(name)
        if not candidates.is_settings(ticket.node.name):
            raise AttributeError(name)
        ticket.node.assign(Choice(OBJECT))
        ticket.search.fresh = True
        return ticket.search.passed_value(ticket.search.child(ticket.node, name))

    def _child(self, key: Any) -> Any:
        child = self._ticket.search.child(self._ticket.node, key)
        self[key] = self._ticket.search.passed_value(child)
        return self[key]

    def _filled(self) -> None:
        if not len(self):
            for key in ("w", "b"):
                self._child(key)

    def __bool__(self) -> bool:
        """It is not empty: `if cache:` comes before the entries are read."""
        return True

    def __iter__(self) -> Any:
        self._filled()
        return super().__iter__()

    def get(self, key: Any, default: Any = None) -> Any:
        """As for a dict; an unknown entry is absent, and worth another case."""
        if key not in self:
            self._ticket.search.want(self._ticket.node, key)
            return default
        return self[key]

    def pop(self, key: Any, *default: Any) -> Any:
        """As for a dict."""
        if key not in self and not default:
            self[key]
        return super().pop(key, *default)

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            return True
        if isinstance(key, str):
            self._ticket.search.want(self._ticket.node, key)
        return False

    def items(self) -> Any:
        """As for a dict; two entries if none is known."""
        self._filled()
        return super().items()

    def values(self) -> Any:
        """As for a dict; two entries if none is known."""
        self._filled()
        return super().values()

    def keys(self) -> Any:
        """As for a dict; two entries if none is known."""
        self._filled()
        return super().keys()

    def copy(self) -> "OpenDict":
        """Return a dictionary that discovers entries of the same node."""
        return OpenDict(self._ticket, super().items())


class OpenObject:
    """An object that has every attribute it is asked for."""

    def __init__(self, ticket: Ticket, attributes: Dict[str, Any]) -> None:
        self.__dict__.update(attributes)
        self.__dict__["_ticket"] = ticket

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or library_frame(1):
            raise AttributeError(name)
        ticket = self.__dict__["_ticket"]
        ticket.node.attributes.add(name)
        thing = ticket.search.passed_value(ticket.search.child(ticket.node, name))
        self.__dict__[name] = thing
        return thing

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __contains__(self, name: str) -> bool:
        held = name in self.__dict__
        if not held:
            ticket = self.__dict__["_ticket"]
            ticket.search.want(ticket.node, name)
        return held

    def get(self, name: str, default: Any = None) -> Any:
        """As for a dict; an unknown entry is absent, and worth another case."""
        return getattr(self, name) if name in self else default


def _flatten_dict(thing: OpenDict) -> Tuple[List[Any], Tuple[Ticket, Tuple[Any, ...]]]:
    keys = tuple(sorted(dict.keys(thing), key=str))
    return [dict.__getitem__(thing, key) for key in keys], (thing._ticket, keys)


def _flatten_object(thing: OpenObject) -> Tuple[List[Any], Tuple[Any, ...]]:
    names = tuple(sorted(name for name in vars(thing) if name != "_ticket"))
    held = {name: vars(thing)[name] for name in names}
    # Numbers and names are settings: JAX must not see them as arrays.
    arrays = tuple(n for n in names if not isinstance(held[n], (str, int, float, type(None))))
    fixed = tuple((name, held[name]) for name in names if name not in arrays)
    return [held[name] for name in arrays], (thing.__dict__["_ticket"], arrays, fixed)


jax.tree_util.register_pytree_node(
    OpenDict, _flatten_dict, lambda aux, leaves: OpenDict(aux[0], zip(aux[1], leaves))
)
jax.tree_util.register_pytree_node(
    OpenObject,
    _flatten_object,
    lambda aux, leaves: OpenObject(aux[0], dict(tuple(zip(aux[1], leaves)) + aux[2])),
)
