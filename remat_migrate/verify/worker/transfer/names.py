"""Finding functions, classes and other named things again in another process.

Everything that a module holds is known by the module's name and a path of attributes. A function
made inside another function has no such path; it is known by the function it was made in and its
place among the code that this one makes functions of.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from typing import Any, List, NamedTuple, Optional, Tuple

INSIDE = "<locals>"


class Found(NamedTuple):
    """Where a thing stands: `inner` when it is what the thing of that name wraps."""

    module: str
    name: str
    inner: bool


def attribute(module: str, name: str) -> Any:
    """What `module` (imported) holds under a dotted name.

    Raises AttributeError when it has no such name, and whatever importing raises.
    """
    value: Any = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


def innermost(value: Any) -> Any:
    """The function below decorators that keep what they wrap in `__wrapped__`, and descriptors."""
    seen = set()
    while id(value) not in seen:
        seen.add(id(value))
        if isinstance(value, (staticmethod, classmethod, types.MethodType)):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        elif isinstance(value, functools.partial):
            value = value.func
        else:
            value = getattr(value, "__wrapped__", value)
    return value


def find(value: Any) -> Optional[Found]:
    """The place of a thing that a module holds, or None.

    The name that the thing has for itself is tried first; then whatever name a module has for it.
    """
    module, name = own_module(value), own_name(value)
    if isinstance(module, str) and name and module in sys.modules:
        held = _held(module, name)
        if held is value:
            return Found(module, name, False)
        if held is not None and innermost(held) is value:
            return Found(module, name, True)
    return _search(value)


def own_module(value: Any) -> Any:
    """The name of the module that a function or class says it is of."""
    return getattr(getattr(value, "__objclass__", value), "__module__", None)


def own_name(value: Any) -> Optional[str]:
    """The qualified name that a function or class has for itself, if any."""
    owner = getattr(value, "__objclass__", None)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if owner is not None and isinstance(name, str) and "." not in name:
        name = "{}.{}".format(owner.__qualname__, name)
    return name if isinstance(name, str) else None


def module_holding(value: Any, name: str) -> Optional[str]:
    """The module that has a value under a name that its type gave for it."""
    for module in (getattr(value, "__module__", None), type(value).__module__):
        if isinstance(module, str) and _held(module, name) is value:
            return module
    return None


def _held(module: str, name: str) -> Any:
    try:
        return attribute(module, name)
    except Exception:  # a property or lazy attribute of the user's may raise anything
        return None


def _search(value: Any) -> Optional[Found]:
    """A name that some imported module has for a value: the most public one."""
    own = own_module(value)
    places = []
    for module_name, module in list(sys.modules.items()):
        if not isinstance(module, types.ModuleType):
            continue
        for name, held in list(vars(module).items()):
            if held is value:
                private = any(part.startswith("_") for part in (*module_name.split("."), name))
                rank = (module_name != own, private, len(module_name), module_name, name)
                places.append((rank, module_name, name))
    if not places:
        return None
    _, module_name, name = min(places)
    return Found(module_name, name, False)


def is_named(value: Any) -> bool:
    """Whether a value is a class, or is called and has a name of its own."""
    return isinstance(value, type) or (callable(value) and own_name(value) is not None)


def is_method_of_value(value: Any) -> bool:
    """Whether a value is a method of a built-in type together with its object, as `[].append`."""
    built_in = (types.BuiltinMethodType, type([].__len__))
    owner = getattr(value, "__self__", None)
    return isinstance(value, built_in) and not isinstance(owner, (types.ModuleType, type(None)))


def is_object(value: Any) -> bool:
    """Whether something that is called is an object with a state, not built in or jitted."""
    made_by_class_statement = 1 << 9
    return bool(type(value).__flags__ & made_by_class_statement) and not hasattr(value, "lower")


class Nested(NamedTuple):
    """A function made inside another: where the outermost one stands, and the way down from it."""

    module: str
    outer: str
    steps: Tuple[Tuple[str, str], ...]  # name and fingerprint of the code at each depth


def find_nested(function: types.FunctionType) -> Optional[Nested]:
    """The place of a function made inside another one; None where it cannot be told for sure."""
    outer, _, rest = function.__qualname__.partition("." + INSIDE + ".")
    names = rest.split("." + INSIDE + ".")
    if not rest or function.__code__.co_name != names[-1] or function.__module__ is None:
        return None  # the name is another function's, given to this one by its decorator
    held = innermost(_held(function.__module__, outer))
    if not isinstance(held, types.FunctionType):
        return None
    ways = [way for way in _ways(held.__code__, names) if way[-1] is function.__code__]
    if len(ways) != 1:
        return None
    steps = tuple((code.co_name, fingerprint(code)) for code in ways[0])
    if len(_matching(held.__code__, steps)) != 1:
        return None
    return Nested(function.__module__, outer, steps)


def code_of(place: Nested) -> Tuple[types.CodeType, Any]:
    """The code of a function made inside another, and the globals it runs in.

    Raises LookupError when there is none, or no telling which.
    """
    held = innermost(attribute(place.module, place.outer))
    if not isinstance(held, types.FunctionType):
        raise LookupError("{}.{} is no function".format(place.module, place.outer))
    codes = _matching(held.__code__, place.steps)
    if len(codes) != 1:
        raise LookupError(
            "{}.{} makes {} functions {}".format(
                place.module, place.outer, len(codes) or "no", place.steps[-1][0]
            )
        )
    return codes[0], held.__globals__


def new_cell() -> Any:
    """A cell for what a function closes over; it holds None."""
    content = None
    cell: Any = (lambda: content).__closure__[0]  # type: ignore[index]
    return cell


def _ways(code: types.CodeType, names: List[str]) -> List[Tuple[types.CodeType, ...]]:
    """All ways down from a function's code through the functions of these names."""
    if not names:
        return [()]
    return [
        (inner, *rest)
        for inner in code.co_consts
        if isinstance(inner, types.CodeType) and inner.co_name == names[0]
        for rest in _ways(inner, names[1:])
    ]


def _matching(code: types.CodeType, steps: Tuple[Tuple[str, str], ...]) -> List[types.CodeType]:
    """The codes at the end of the steps.

    A name alone decides when it can, for the body may have been migrated; a lambda has none.
    """
    codes = [code]
    for name, mark in steps:
        named = [way[0] for outer in codes for way in _ways(outer, [name])]
        same = [inner for inner in named if fingerprint(inner) == mark]
        codes = named if len(named) == 1 and name != "<lambda>" else same
    return codes


def fingerprint(code: types.CodeType) -> str:
    """What tells a function's code from its neighbours' of the same name."""
    plain = (bool, int, float, complex, str, bytes)
    constants = sorted(repr(value) for value in code.co_consts if isinstance(value, plain))
    return repr(
        (
            code.co_argcount,
            code.co_kwonlyargcount,
            code.co_varnames,
            code.co_freevars,
            code.co_names,
            constants,
        )
    )
