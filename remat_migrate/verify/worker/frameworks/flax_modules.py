"""Flax linen modules as values: their fields and submodules, and unbound copies."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, Callable, Dict, List, Tuple

from .abstraction import mapped

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
        updates = {}
        for field in dataclasses.fields(module):
            if field.init and field.name not in NOT_FIELDS:
                value = getattr(module, field.name)
                unbound = mapped(value, is_module, self.unbound)
                updates.update({field.name: unbound} if unbound is not value else {})
        if not updates and not is_bound(module) and module.parent is None:
            return module
        return module.clone(parent=None, **updates)
