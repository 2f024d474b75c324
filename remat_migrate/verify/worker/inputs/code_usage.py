"""Find what a function's code reads: names, attributes, keys of its options."""

from __future__ import annotations

import dis
import inspect
from types import CodeType
from typing import Any, Callable, Dict, Iterable, List, Optional, Set

from ..lookup import attribute, code_names, has, unwrapped
from . import type_hints

# Larger ones are not sizes that an input of a test may exceed.
_LARGEST = 256
# How many calls deep code is read.
_DEPTH = 4

_CONSTANT = ("LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST")


def names_read(functions: Iterable[Any]) -> List[str]:
    """Return the names, attributes, and keys that some functions read, in this order."""
    found: Dict[str, None] = {}
    for function in functions:
        code = function.__code__
        found.update(dict.fromkeys(sorted(code_names(code) | _code_keys(code))))
    return list(found)


def with_properties(cls: type, names: Iterable[str]) -> Set[str]:
    """Return names with those that the properties of a class read, if these are among them."""
    found = set(names)
    for name in names:
        getter = attribute(inspect.getattr_static(cls, name, None), "fget")
        if has(getter, "__code__"):
            found |= code_names(getter.__code__)
    return found


def integers_read(unit: Callable[..., Any]) -> Set[int]:
    """Return the integers in the code and the defaults of a function and of what it calls.

    Includes the globals and the class attributes that are read.
    """
    found: List[Any] = []
    for function in reached(unit):
        found += _code_constants(function.__code__)
        found += function.__defaults__ or ()
        found += (function.__kwdefaults__ or {}).values()
        found += [function.__globals__.get(name) for name in code_names(function.__code__)]
    return integers_among(found)


def integers_among(things: Iterable[Any]) -> Set[int]:
    """Return the integers among some values that may be sizes."""
    return {thing for thing in things if type(thing) is int and 0 < thing <= _LARGEST}


def reached(unit: Callable[..., Any], owner: Optional[type] = None) -> List[Any]:
    """Return a function and those of the same package that it calls.

    With the class of a method, the other methods are among them: `setup` makes the layers. So are
    those of the classes of its arguments.
    """
    found: List[Any] = []
    seen: Set[int] = set()
    function = unwrapped(unit) if callable(unit) else unit
    while has(function, "func"):
        function = function.func
    home = _package(function)

    def walk(function: Any, left: int) -> None:
        function = unwrapped(function) if callable(function) else function
        function = attribute(function, "__func__", function)
        if isinstance(function, type):
            bases = [base for base in function.__mro__ if _package(base) == home]
            for member in [member for base in bases for member in vars(base).values()]:
                member = member.fget if isinstance(member, property) else member
                if callable(member) and left:
                    walk(member, left)
            return
        code = attribute(function, "__code__")
        if code is None or id(code) in seen:
            return
        seen.add(id(code))
        scope = attribute(function, "__globals__", {})
        if inspect.isfunction(function):
            found.append(function)
        names = code_names(code)
        for name in names if left else ():
            thing = scope.get(name)
            inside = [attribute(thing, n) for n in names if inspect.ismodule(thing)]
            for other in [thing, *inside]:
                if _package(other) == home:
                    walk(other, left - 1)

    walk(function, _DEPTH)
    settings = type_hints.of_callable(function).values() if callable(function) else ()
    for cls in [owner, *settings]:
        if isinstance(cls, type) and (cls is owner or _package(cls) == home):
            walk(cls, _DEPTH)
    return found


def _package(thing: Any) -> str:
    return (getattr(thing, "__module__", "") or "").partition(".")[0]


def _code_keys(code: CodeType) -> Set[str]:
    """Return the strings in some code that may be keys of a dictionary."""
    return {text for text in _code_constants(code) if type(text) is str and text.isidentifier()}


def _code_constants(code: CodeType) -> List[Any]:
    found: List[Any] = []
    for constant in [one.argval for one in dis.get_instructions(code) if one.opname in _CONSTANT]:
        if isinstance(constant, CodeType):
            found += _code_constants(constant)
        else:
            found += constant if isinstance(constant, tuple) else [constant]
    return found
