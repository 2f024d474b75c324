"""Find what a function's code reads: names, attributes, keys of its options."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import CodeType
from typing import Any, Callable, List, Set


def names_read(unit: Callable[..., Any], depth: int = 4) -> Set[str]:
    """Return the names and attributes that a function, or one that it calls, reads."""
    found: Set[str] = set()
    seen: Set[int] = set()
    function = inspect.unwrap(unit) if callable(unit) else unit
    while hasattr(function, "func"):
        function = function.func
    home = (getattr(function, "__module__", "") or "").partition(".")[0]

    def walk(function: Any, left: int) -> None:
        function = inspect.unwrap(function) if callable(function) else function
        if isinstance(function, type):
            for member in vars(function).values():
                if callable(member) and left:
                    walk(member, left - 1)
            return
        code = getattr(function, "__code__", None)
        if code is None or id(code) in seen:
            return
        seen.add(id(code))
        names = _code_names(code)
        found.update(names)
        scope = getattr(function, "__globals__", {})
        for name in names if left else ():
            thing = scope.get(name)
            owners = [thing] + [getattr(thing, n, None) for n in names if inspect.ismodule(thing)]
            for owner in owners:
                if (getattr(owner, "__module__", "") or "").partition(".")[0] == home:
                    walk(owner, left - 1)

    walk(function, depth)
    return found


def _code_names(code: CodeType) -> Set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _code_names(constant)
    return names


def asked_keys(unit: Callable[..., Any], name: str) -> List[str]:
    """Return the keys that a function reads from its `**name`, as in `name["k"]`."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(unit))))
    except (OSError, TypeError, SyntaxError):
        return []
    found: List[str] = []
    for part in ast.walk(tree):
        asked: Any = None
        if isinstance(part, ast.Subscript) and _named(part.value, name):
            asked = getattr(part.slice, "value", part.slice)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            if part.func.attr in ("get", "pop") and _named(part.func.value, name) and part.args:
                asked = part.args[0]
        elif isinstance(part, ast.Compare) and _named(part.comparators[0], name):
            asked = part.left
        text = asked if isinstance(asked, str) else getattr(asked, "value", None)
        if isinstance(text, str) and text not in found:
            found.append(text)
    return found


def _named(expression: Any, name: str) -> bool:
    return getattr(expression, "id", None) == name
