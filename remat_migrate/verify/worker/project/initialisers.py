"""Find the functions of a project that make what another function takes as its parameters.

Names and annotations tell: `init_lstm(key)` for the first parameter of `lstm_step`, `init_params`
for one called `params`, a function annotated to return a `TrainState` for one annotated so.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
from typing import Any, Callable, Dict, FrozenSet, List, NamedTuple, Tuple

from ..environment import projects
from ..inputs import type_hints, uses
from ..lookup import signature, unwrapped
from . import constructors

_INITIALISER = re.compile(
    r"init(iali[sz]e)?\d*|(init|initiali[sz]e|initial)_\w+|\w+_init(iali[sz]er)?"
)
_MAKER = re.compile(
    r"(create|make|build|new|default|random|get|sample|empty|zeros?)_(\w+_)?"
    r"(params?|parameters|weights|variables|states?|model|network|net|layers?|cache|theta|carry)"
)
_PARAMETERS = re.compile(
    r"(\w+_)?(params?|parameters|weights|variables|theta|layers|blocks|vars)|model|net|p"
)
_WHOLE = re.compile(
    r"init|initiali[sz]e|(\w+_)?(params|parameters|weights|variables|model|network)"
)
_NO_LAYER = frozenset(["init", "params", "create", "make", "get", ""])


class Initialiser(NamedTuple):
    """A function that makes something.

    Attributes:
        function: the function.
        field: the part of a state that is meant, if the result is one that has it.
        keys: what the part of the result that is meant has: the parameters of one layer.
    """

    function: Callable[..., Any]
    field: str = ""
    keys: FrozenSet[str] = frozenset()

    def part(self, result: Any) -> Any:
        """Return what is meant of a result."""
        is_state = hasattr(result, "_fields") or hasattr(result, "__dataclass_fields__")
        found = getattr(result, self.field, result) if is_state and self.field else result
        waiting = [found]
        for part in waiting:
            if isinstance(part, dict) and self.keys.issubset(part):
                return part
            if isinstance(part, (dict, list, tuple)):
                waiting += part.values() if isinstance(part, dict) else part[:1]
        return found


def named(function: Any, name: str) -> List[Initialiser]:
    """Return what may make a parameter of a function by their names, the likeliest first."""
    parameters = [n for n in _names(function) if n not in ("self", "cls")]
    nearby = [near for near in _nearby(function) if _says_so(near.__name__)]
    alike = [f for f in nearby if _are_named_alike(f.__name__, unwrapped(function).__name__)]
    if _PARAMETERS.fullmatch(name.lower().strip("_")):
        found = alike + nearby
    else:
        found = alike if name in parameters[:1] else []
        found += [f for f in nearby if name in f.__name__.split("_")[1:]]
    keys = frozenset(uses.of_parameter(function, name).keys)
    return [Initialiser(f, name, keys) for f in dict.fromkeys(found)]


def returning(function: Any, cls: Any) -> List[Initialiser]:
    """Return the functions near one that are annotated to return an instance of a class."""
    found = []
    for near in _nearby(function):
        hints = dict(type_hints.of_callable(near))
        if hints.pop("return", None) is cls and cls not in hints.values():
            found.append(Initialiser(near))
    return found


@functools.lru_cache(maxsize=None)
def sizes_near(function: Any) -> Dict[str, int]:
    """Return the default sizes of a function and of those near it that make something."""
    found: Dict[str, int] = {}
    for near in [function, *filter(lambda f: _says_so(f.__name__), _nearby(function))]:
        made = signature(near)
        for name, parameter in made.parameters.items() if made else ():
            if type(parameter.default) is int:
                found.setdefault(name, parameter.default)
    return found


def _names(function: Any) -> List[str]:
    made = signature(function)
    return list(made.parameters) if made else []


def _nearby(function: Any) -> List[Any]:
    """Return functions of a function's module, of those it imports, and of those that import it."""
    return _functions_near(getattr(unwrapped(function), "__module__", None) or "")


@functools.lru_cache(maxsize=None)
def _functions_near(name: str) -> List[Any]:
    here = sys.modules.get(name)
    if here is None or not _is_ours(here):
        return []
    held = list(vars(here).values())
    imported: List[Any] = [thing for thing in held if isinstance(thing, types.ModuleType)]
    imported += [sys.modules.get(getattr(thing, "__module__", None) or "") for thing in held]
    others = list(constructors.modules())
    package = here.__name__.rpartition(".")[0]
    beside = [m for m in others if m.__name__.rpartition(".")[0] == package]
    users = [m for m in others if any(_is_from(thing, here) for thing in list(vars(m).values()))]
    ours: List[Any] = [here, *filter(_is_ours, imported), *users, *beside]
    found: List[Any] = []
    for module in dict.fromkeys(ours):
        functions = [
            thing
            for thing in list(vars(module).values())
            if inspect.isfunction(thing) and thing.__module__ == module.__name__
        ]
        found += sorted(functions, key=_rank)
    return found


def _is_ours(module: Any) -> bool:
    return projects.is_project_file(getattr(module, "__file__", None))


def _is_from(thing: Any, module: Any) -> bool:
    return thing is module or getattr(thing, "__module__", None) == module.__name__


def _says_so(name: str) -> bool:
    """Return whether a function's name says that it makes parameters or a state."""
    name = name.lower().strip("_")
    return bool(_INITIALISER.fullmatch(name) or _MAKER.fullmatch(name))


def _rank(function: Any) -> Tuple[bool, bool]:
    """Order initialisers: of all parameters, of some, others."""
    name = function.__name__.lower().strip("_")
    return not _WHOLE.fullmatch(name), not _INITIALISER.fullmatch(name)


def _are_named_alike(initialiser: str, name: str) -> bool:
    """Return whether an initialiser is of one layer: `init_lstm` of `lstm_step`."""
    words = set(re.split("_+", initialiser.lower())) - _NO_LAYER
    others = set(re.split("_+", name.lower())) - {"params", ""}
    return any(
        word == other or (min(len(word), len(other)) >= 4 and other.startswith(word[:4]))
        for word in words
        for other in others
    )
