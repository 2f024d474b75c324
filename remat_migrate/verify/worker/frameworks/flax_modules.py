"""Flax linen modules as values: their fields and submodules, and unbound copies."""

from __future__ import annotations

import dataclasses
import sys
import types
from typing import Any, Callable, Dict, Iterator, List, Tuple

import jax

Place = Tuple[Any, ...]  # indices and keys; "self" leads into a bound method
OBJECT_OF_METHOD = "self"
NOT_FIELDS = ("parent", "name")


def linen() -> Any:
    """Return `flax.linen`, if the user's code has imported it."""
    module = sys.modules.get("flax.linen")
    return module if hasattr(module, "Module") else None


def is_module(value: Any) -> bool:
    """Return whether a value is a linen module."""
    library = linen()
    return library is not None and isinstance(value, library.Module)


def is_module_class(cls: Any) -> bool:
    """Return whether a value is a class of linen modules."""
    library = linen()
    return library is not None and isinstance(cls, type) and issubclass(cls, library.Module)


def is_bound(value: Any) -> bool:
    """Return whether a value is a linen module that is bound to variables."""
    return is_module(value) and getattr(value, "scope", None) is not None


def fields(module: Any) -> List[Tuple[str, Any]]:
    """Return the fields of a module that differ from their defaults, which are often closures."""
    return [
        (field.name, value)
        for field in dataclasses.fields(module)
        if field.init and field.name != "parent"
        for value in [getattr(module, field.name)]
        if value is not field.default
    ]


def nearest_class(module: Any, find: Callable[[Any], Any]) -> type:
    """Return a module's class, or the base class of it that can be found by name.

    Flax's transforms make a subclass on the spot (`CheckpointBlock` of `Block`). Inside the
    transform, where its methods run, an instance of it is one of the class it was made of.
    """
    names = [field.name for field in dataclasses.fields(module)]
    for cls in type(module).__mro__:
        same = dataclasses.is_dataclass(cls) and [f.name for f in dataclasses.fields(cls)] == names
        if not same:
            break
        if find(cls) is not None:
            return cls
    return type(module)


def unbound(value: Any) -> Any:
    """Return a value with every module in it unbound.

    Looks into tuples, lists and dicts, and into the objects of bound methods.
    """
    unbinder = Unbinder()
    return replaced_at(value, (), lambda _, module: unbinder.unbound(module))


class Unbinder:
    """Clones modules without parent and variables, each once, so that sharing is preserved."""

    def __init__(self) -> None:
        self._made: Dict[int, Tuple[Any, Any]] = {}  # keeps the modules alive: ids are reused

    def unbound(self, module: Any) -> Any:
        """Return a module, and the modules in its fields, unbound; its name is kept.

        One that is unbound already is returned as it is.
        """
        if id(module) not in self._made:
            self._made[id(module)] = (module, self._clone(module))
        return self._made[id(module)][1]

    def _clone(self, module: Any) -> Any:
        updates = {
            name: _mapped(value, self.unbound)
            for name, value, inside in submodules(module)
            if any(self.unbound(child) is not child for child in inside)
        }
        if not updates and not is_bound(module) and module.parent is None:
            return module
        return module.clone(parent=None, **updates)


def submodules(module: Any) -> Iterator[Tuple[str, Any, List[Any]]]:
    """Yield the fields that hold modules: name, value, the modules."""
    for field in dataclasses.fields(module):
        if field.init and field.name not in NOT_FIELDS:
            value = getattr(module, field.name)
            inside = [leaf for leaf in leaves(value) if is_module(leaf)]
            if inside:
                yield field.name, value, inside


def leaves(value: Any) -> List[Any]:
    """Return the leaves of a tree; modules are leaves."""
    try:
        return jax.tree_util.tree_leaves(value, is_leaf=is_module)
    except (TypeError, ValueError):  # keys without an order
        return []


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    return jax.tree_util.tree_map(
        lambda leaf: change(leaf) if is_module(leaf) else leaf, value, is_leaf=is_module
    )


def modules_among(args: Any, kwargs: Dict[str, Any]) -> List[Tuple[Place, Any]]:
    """Return the modules in the arguments of a call, with their places."""
    found: List[Tuple[Place, Any]] = []

    def note(place: Place, module: Any) -> Any:
        found.append((place, module))
        return module

    replaced_at(list(args), ("args",), note)
    replaced_at(dict(kwargs), ("kwargs",), note)
    return found


def replaced_at(value: Any, place: Place, change: Callable[[Place, Any], Any]) -> Any:
    """Return a value with each module in it changed; unchanged containers are not copied."""
    if is_module(value):
        return change(place, value)
    if type(value) is types.MethodType:
        owner = replaced_at(value.__self__, (*place, OBJECT_OF_METHOD), change)
        if owner is value.__self__:
            return value
        if is_module(owner):  # Flax looks for a wrapped method on the class
            return getattr(owner, value.__name__)
        return types.MethodType(value.__func__, owner)
    if type(value) is dict:
        pairs = {key: replaced_at(part, (*place, key), change) for key, part in value.items()}
        return pairs if any(pairs[key] is not part for key, part in value.items()) else value
    if isinstance(value, (tuple, list)):
        parts = [replaced_at(part, (*place, i), change) for i, part in enumerate(value)]
        if all(new is old for new, old in zip(parts, value)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value
