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
from collections.abc import Iterator
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


class NestedName(NamedTuple):
    """The place of a function defined in another one.

    Attributes:
        module: the module of the outermost function.
        outer: the qualified name of the outermost function.
        steps: the name and fingerprint of the code at each depth below it.
    """

    module: str
    outer: str
    steps: tuple[tuple[str, str], ...]


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
    """Return the place of an object that a module holds, or None.

    Its own name is tried first, then that of any module that holds it.
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
    paths = [path for path in _paths(held.__code__, names) if path[-1] is function.__code__]
    if len(paths) != 1:
        return None
    steps = tuple((code.co_name, _fingerprint(code)) for code in paths[0])
    if len(_matching(held.__code__, steps)) != 1:
        return None
    return NestedName(function.__module__, outer, steps)


def closure(function: types.FunctionType) -> dict[str, Any]:
    """Return what a function closes over, without the cells that are still empty."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def nested(
    module: str, outer: str, steps: tuple[tuple[str, str], ...], closed_over: list[str]
) -> types.FunctionType:
    """Return a function defined in another one, as this process has it; `fill` completes it.

    Raises:
        CannotLoad: there is no such function, several match, or it no longer closes over a name.
    """
    held = lookup(module, outer, inner=True)
    codes = _matching(held.__code__, steps) if isinstance(held, types.FunctionType) else []
    name = ".".join([module, outer, *(step[0] for step in steps)])
    if len(codes) != 1:
        found = "several functions match" if codes else "there is no such function"
        raise CannotLoad("cannot find {}: {}".format(name, found))
    code = codes[0]
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


def _paths(code: types.CodeType, names: list[str]) -> Iterator[tuple[types.CodeType, ...]]:
    """Yield all paths down from a function's code through functions of these names."""
    if not names:
        yield ()
        return
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType) and inner.co_name == names[0]:
            for rest in _paths(inner, names[1:]):
                yield (inner, *rest)


def _matching(code: types.CodeType, steps: tuple[tuple[str, str], ...]) -> list[types.CodeType]:
    """Return the codes at the end of the steps.

    A name alone decides where it is unique, for the body may have been migrated; a lambda has none.
    """
    codes = [code]
    for name, mark in steps:
        named = [path[0] for outer in codes for path in _paths(outer, [name])]
        same = [inner for inner in named if _fingerprint(inner) == mark]
        codes = named if len(named) == 1 and name != "<lambda>" else same
    return codes


def _fingerprint(code: types.CodeType) -> str:
    """Return what distinguishes a function's code from that of others with the same name."""
    plain = (bool, int, float, complex, str, bytes)
    constants = sorted(repr(value) for value in code.co_consts if isinstance(value, plain))
    variables = (code.co_varnames, code.co_freevars, code.co_names)
    return repr((code.co_argcount, code.co_kwonlyargcount, *variables, constants))
