"""Settings for a parameter of a function: what the project passes, or has that is read of it."""

from __future__ import annotations

import ast
import contextlib
import os
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple

import jax

from ..inputs import candidates
from ..instances import sizes
from ..instances.constructions import signature
from ..instances.expressions import Unknown
from ..instances.sources import Source, key_of, parameters, parsed_file
from ..lookup import unwrapped
from .passed_on import aliases, is_one_of, passed_on

_DEEPEST = 4
_NOT_FIELDS = {"get", "to_dict", "replace", "items", "keys", "values", "copy", "update"}
_NOT_FIELDS |= {"_replace", "_asdict"}
_OF_ARRAYS = {name for name in dir(jax.Array) if not name.startswith("_")}
_NOT_SETTINGS = {"self", "cls"}
# Read of a parameter whose name does not tell that it takes settings.
_FEWEST_FIELDS = 3


class FunctionSettings:
    """The settings that functions of a project take.

    Args:
        constructions: the project.
    """

    def __init__(self, constructions: Any) -> None:
        self.constructions = constructions
        self.sources = constructions.sources
        self.evaluator = constructions.evaluator
        self._taken: Dict[Any, bool] = {}
        self._read: Dict[Any, Set[str]] = {}
        self._after: Dict[str, Optional[Source]] = {}
        self.evaluator.settings_for = self._by_fields

    def are_taken_by(self, function: Any, name: str) -> bool:
        """Return whether a parameter takes settings, by its name or what is read of it."""
        if candidates.is_settings(name):
            return True
        if name in _NOT_SETTINGS:
            return False
        key = (unwrapped(function), name)
        if key not in self._taken:
            read = self.fields_read(function, name) - _OF_ARRAYS
            found = self.sources.definition(function) if len(read) >= _FEWEST_FIELDS else None
            offered = self.constructions.offering(read, found[1].path) if found else ()
            self._taken[key] = any(sizes.holds_settings(one) for one in offered)
        return self._taken[key]

    def fields_read(self, function: Any, name: str) -> Set[str]:
        """Return what a function, and what it calls, reads of an argument: attributes and keys.

        That is what it reads before or after the migration.
        """
        found: Set[str] = set()
        before = self.sources.definition(function)
        for node, source in [before, *self._migrated(function)] if before else ():
            found |= self._fields(node, source, name, _DEEPEST)
        return found

    def _migrated(self, function: Any) -> Iterator[Tuple[Any, Source]]:
        """Yield the definition of a function after the migration."""
        function = unwrapped(function)
        path = os.path.realpath(function.__code__.co_filename)
        if not self.constructions.migrated:
            return
        path = os.path.join(self.constructions.migrated, os.path.relpath(path, self.sources.root))
        if path not in self._after:
            self._after[path] = parsed_file(path)
        source = self._after[path]
        if source is None:
            return
        names = [name for name in function.__qualname__.split(".") if name != "<locals>"]
        for node in source.functions(names[-1]):
            around = [getattr(each, "name", "") for each in source.around(node)[::-1]]
            if [*around, node.name] == names:
                yield node, source

    def passed(self, function: Any, name: str) -> Any:
        """Return what a caller passes for a parameter.

        Raises:
            Unknown: no caller passes anything that can be told.
        """
        found = self.sources.definition(function)
        if found is None:
            raise Unknown
        node, source = found
        names = list(parameters(node))
        in_class = isinstance(next(iter(source.around(node)), None), ast.ClassDef)
        if name not in names:
            raise Unknown
        at = names.index(name) - (1 if in_class else 0)
        return self.evaluator.passed(node.name, name, at, source.path)

    def _by_fields(self, node: Any, source: Source, name: str) -> Any:
        read = self._fields(node, source, name, _DEEPEST) if candidates.is_settings(name) else ()
        for found in self.constructions.offering(read, source.path) if read else ():
            return found
        raise Unknown

    def values(self, function: Any, name: str) -> List[Any]:
        """Return settings for a parameter, the likeliest first, with small sizes."""
        read = self.fields_read(function, name)
        found: List[Any] = []
        with contextlib.suppress(Unknown):
            found.append(self.passed(function, name))
        if read:
            _, source = self.sources.definition(function)
            found += list(self.constructions.offering(read, source.path))
        kept: List[Any] = []
        for value in found:
            if isinstance(value, dict) or sizes.holds_settings(value):
                if read <= set(fields(value)) | set(dir(value)):
                    small = sizes.levels({name: value})[0][name]
                    if all(repr(small) != repr(other) for other in kept):
                        kept.append(small)
        return kept

    def _fields(self, node: Any, source: Source, name: str, depth: int) -> Set[str]:
        key = (source.path, id(node), name)
        if key in self._read:
            return self._read[key]
        found = self._read[key] = set()
        names = {name, *aliases(node, name)}
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and is_one_of(part.value, names):
                found.add(part.attr)
            elif isinstance(part, ast.Subscript) and is_one_of(part.value, names):
                key = key_of(part)
                if isinstance(key, str):
                    found.add(key)
        if depth:
            for place in passed_on(node, source, name, self.sources, self.evaluator):
                found |= self._fields(*place, depth - 1)
        found -= _NOT_FIELDS
        return found


def fields(settings: Any) -> Dict[str, Any]:
    """Return what settings hold by name: entries of a dictionary, attributes of an object."""
    if isinstance(settings, dict):
        return {key: value for key, value in dict.items(settings) if isinstance(key, str)}
    return sizes.attributes(settings)


def has(cls: type, attributes: Iterable[str]) -> bool:
    """Return whether instances of a class appear to have all these attributes."""
    known = set(dir(cls)) | set(getattr(cls, "__dataclass_fields__", ()))
    for owner in cls.__mro__:
        known |= set(getattr(owner, "__annotations__", ()))
    if not hasattr(cls, "__dataclass_fields__") and not hasattr(cls, "_fields"):
        made = signature(cls)
        known |= set(made.parameters) if made else set()
    return all(attribute in known for attribute in attributes)
