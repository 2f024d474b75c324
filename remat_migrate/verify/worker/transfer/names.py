"""Names by which another process finds functions, classes and other module-level objects again.

An object that a module holds is known by the module's name and a path of attributes. A function
defined in another function has no such path: it is known by the outer function and its place among
the code of the functions defined there.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import types
from typing import Any, NamedTuple

from ..lookup import attribute

LOCALS = "<locals>"


class CannotLoad(Exception):
    """A saved value names something that this process does not have; the message says what."""


class Name(NamedTuple):
    """The place of an object in a module; `inner`: it is what the object there wraps."""

    module: str
    qualname: str
    inner: bool


Step = tuple[str, int, int]


class NestedName(NamedTuple):
    """The place of a function defined in another one.

    Attributes:
        module: the module of the outermost function.
        outer: the qualified name of the outermost function.
        steps: at each depth below it, the name, which of the functions of that name it is, and how
            many there are.
    """

    module: str
    outer: str
    steps: tuple[Step, ...]


def lookup(module: str, qualname: str, inner: bool = False) -> Any:
    """Return what a module, which is imported, holds under a dotted name.

    Raises:
        CannotLoad: there is no such name, or importing the module raises.
    """
    try:
        value: Any = importlib.import_module(module)
        for part in qualname.split("."):
            value = getattr(value, part)
    except Exception as error:
        message = "cannot find {}.{}: {}: {}"
        raise CannotLoad(message.format(module, qualname, type(error).__name__, error)) from error
    return innermost(value) if inner else value


def innermost(value: Any) -> Any:
    """Return the function below descriptors, partials and decorators that set `__wrapped__`."""
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
            value = attribute(value, "__wrapped__", value)
    return value


def find(value: Any) -> Name | None:
    """Return the name by which an imported module holds an object, or None if no module does.

    The object's own module and name are tried first, then all imported modules.
    """
    module, qualname = attribute(value, "__module__"), own_name(value)
    if isinstance(module, str) and qualname and module in sys.modules:
        held = _held(module, qualname)
        if held is value:
            return Name(module, qualname, False)
        if held is not None and innermost(held) is value:
            return Name(module, qualname, True)
    return _search(value, module)


def own_name(value: Any) -> str | None:
    """Return the qualified name that a function or class gives as its own, if any."""
    name = attribute(value, "__qualname__") or attribute(value, "__name__")
    return name if isinstance(name, str) else None


def is_named(value: Any) -> bool:
    """Return whether a value is a class, or a callable with a name of its own."""
    return isinstance(value, type) or (callable(value) and own_name(value) is not None)


def _held(module: str, name: str) -> Any:
    """Return what a module holds under a name; None if it has none."""
    try:
        return lookup(module, name)
    except CannotLoad:
        return None


def _search(value: Any, own: Any) -> Name | None:
    """Return the most public name by which an imported module, best its own, holds a value."""
    places = []
    for module_name, module in list(sys.modules.items()):
        if not isinstance(module, types.ModuleType):
            continue
        for name, held in list(vars(module).items()):
            if held is value:
                private = any(part.startswith("_") for part in (*module_name.split("."), name))
                rank = (module_name != own, private, len(module_name), module_name, name)
                places.append((rank, Name(module_name, name, False)))
    return min(places)[1] if places else None


def find_nested(function: types.FunctionType) -> NestedName | None:
    """Return the place of a function defined in another one; None where it is ambiguous."""
    outer, _, rest = function.__qualname__.partition("." + LOCALS + ".")
    names = rest.split("." + LOCALS + ".")
    if not rest or function.__code__.co_name != names[-1] or function.__module__ is None:
        return None  # a decorator gave it the name of another function
    held = innermost(_held(function.__module__, outer))
    if not isinstance(held, types.FunctionType):
        return None
    steps = _steps(held.__code__, names, function.__code__)
    return NestedName(function.__module__, outer, steps) if steps else None


def _steps(code: types.CodeType, names: list[str], target: types.CodeType) -> tuple[Step, ...]:
    """Return the steps by which some code, through functions of these names, leads to another."""
    inside = _functions(code, names[0])
    for number, inner in enumerate(inside):
        rest = _steps(inner, names[1:], target) if names[1:] else ()
        if rest or inner is target:
            return ((names[0], number, len(inside)), *rest)
    return ()


def _functions(code: types.CodeType, name: str) -> list[types.CodeType]:
    """Return the code of the functions of a name that a function defines."""
    codes = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return [one for one in codes if one.co_name == name]


def closure(function: types.FunctionType) -> dict[str, Any]:
    """Return what a function closes over, without the cells that are still empty."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def nested(
    module: str, outer: str, steps: tuple[Step, ...], closed_over: list[str]
) -> types.FunctionType:
    """Return a function defined in another one, as this process has it; `fill` completes it.

    Raises:
        CannotLoad: there are not as many functions of its name, or it no longer closes over a name.
    """
    held = lookup(module, outer, inner=True)
    name = ".".join([module, outer, *(step[0] for step in steps)])
    if not isinstance(held, types.FunctionType):
        raise CannotLoad("cannot find {}".format(name))
    code = held.__code__
    for step, number, count in steps:
        inside = _functions(code, step)
        if len(inside) != count:
            found = "{} functions are called {}, not {}".format(len(inside), step, count)
            raise CannotLoad("cannot find {}: {}".format(name, found))
        code = inside[number]
    missing = set(closed_over) - set(code.co_freevars)
    if missing:
        raise CannotLoad("{} no longer closes over {}".format(name, ", ".join(sorted(missing))))
    cells = tuple(types.CellType() for _ in code.co_freevars)
    function = types.FunctionType(code, held.__globals__, code.co_name, None, cells)
    function.__module__ = module
    separator = "." + LOCALS + "."
    function.__qualname__ = separator.join([outer, *(step[0] for step in steps)])
    return function


def fill(function: types.FunctionType, state: Any) -> None:
    """Give a function what it closes over, which may be the function itself, and its defaults."""
    values, function.__defaults__, function.__kwdefaults__ = state
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if name in values:
            cell.cell_contents = values[name]
