"""Classes of a project whose instances a function calls: `model(x)`, `agent.act(x)`."""

from __future__ import annotations

import ast
import inspect
from typing import Any, Iterator, List, NamedTuple, Set

import jax

from ..frameworks import flax_modules, pure_functions
from ..instances.constructions import Constructions
from .passed_on import aliases, is_one_of, passed_on
from .settings import FunctionSettings, has

_DEEPEST = 3
_MOST = 3
_OF_VALUES = {name for kind in (jax.Array, dict, list, str) for name in dir(kind)} - {"__call__"}


class _Use(NamedTuple):
    """A call of an argument or its method, with how many arguments and which keywords."""

    method: str
    positional: int
    keywords: Set[str]


def classes_called(
    function: Any, name: str, settings: FunctionSettings, constructions: Constructions
) -> List[type]:
    """Return classes whose instances a parameter may be, by how the function calls it."""
    found = constructions.sources.definition(function)
    uses = list(_uses(*found, name, constructions, _DEEPEST)) if found else []
    if not found or not uses or any(use.method in _OF_VALUES for use in uses):
        return []
    read = settings.fields_read(function, name) | {use.method for use in uses}
    return [cls for cls in constructions.classes(read, found[1].path) if _fits(cls, read, uses)][
        :_MOST
    ]


def _uses(
    node: Any, source: Any, name: str, constructions: Constructions, depth: int
) -> Iterator[_Use]:
    names = {name, *aliases(node, name)}
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        keywords = {keyword.arg for keyword in call.keywords if keyword.arg}
        if is_one_of(call.func, names):
            yield _Use("__call__", len(call.args), keywords)
        elif isinstance(call.func, ast.Attribute) and is_one_of(call.func.value, names):
            yield _Use(call.func.attr, len(call.args), keywords)
    if depth:
        for place in passed_on(node, source, name, constructions.sources, constructions.evaluator):
            yield from _uses(*place, constructions, depth - 1)


def _fits(cls: type, read: Set[str], uses: List[_Use]) -> bool:
    # Modules of Flax linen and Haiku are called by `apply`.
    if flax_modules.is_module_class(cls) or pure_functions.is_deferred(cls):
        return False
    constructor: Any = vars(cls).get("__init__")
    assigned = constructor.__code__.co_names if inspect.isfunction(constructor) else ()
    if not has(cls, read - set(assigned)):
        return False
    for use in uses:
        try:
            made = inspect.signature(getattr(cls, use.method))
            made.bind(None, *[None] * use.positional, **dict.fromkeys(use.keywords))
        except (AttributeError, TypeError, ValueError):
            return False
    return True
