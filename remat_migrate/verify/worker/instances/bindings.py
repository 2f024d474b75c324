"""What names are bound to by assignments and loops of a function."""

from __future__ import annotations

import ast
from typing import Any, List, Optional, Tuple

from ..lookup import has

# One element of a list, one row of an array, or one entry of a dictionary.
ELEMENT = object()

# An expression, and where in its value something is: keys, indices, and names of attributes.
Bound = Tuple[ast.expr, Tuple[Any, ...]]


def first_of(value: Any, path: Tuple[Any, ...]) -> Any:
    """Return what is at a path in a value; the first element for any.

    Raises:
        LookupError: nothing is.
    """
    for step in path:
        if step is ELEMENT:
            if isinstance(value, dict):
                value = list(value.values())
            try:
                value = value[0] if has(value, "__getitem__") else next(iter(value))
            except (TypeError, StopIteration) as error:
                raise LookupError("element") from error
        elif isinstance(step, str) and not isinstance(value, dict) and has(value, step):
            value = getattr(value, step)
        else:
            try:
                value = value[step]
            except (TypeError, ValueError) as error:
                raise LookupError(step) from error
    return value


def binding(owner: Any, name: str, before: float) -> Optional[Bound]:
    """Return what a name is in a function: an expression, and where in its value it is."""
    return _last(_assignments(owner, name, before) + _loops(owner, name, before))


_Found = List[Tuple[int, Bound]]


def _last(found: _Found) -> Optional[Bound]:
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _assignments(owner: Any, name: str, before: float) -> _Found:
    found: _Found = []
    for node in ast.walk(owner):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                steps = _position(target, name)
                if steps is not None and node.lineno < before:
                    found.append((node.lineno, (node.value, steps)))
    return found


def _loops(owner: Any, name: str, before: float) -> _Found:
    found: _Found = []
    for node in ast.walk(owner):
        if isinstance(node, (ast.For, ast.comprehension)):
            bound = _of_loop(node.target, node.iter, name)
            if bound is not None and node.target.lineno <= before:
                found.append((node.target.lineno, bound))
    return found


def _of_loop(target: ast.expr, iterated: ast.expr, name: str) -> Optional[Bound]:
    steps = _position(target, name)
    if steps is None:
        return None
    if isinstance(iterated, ast.Call):
        called = getattr(iterated.func, "attr", None) or getattr(iterated.func, "id", "")
        if called == "enumerate" and steps and iterated.args:
            inner = target.elts[1] if isinstance(target, (ast.Tuple, ast.List)) else target
            if steps[0] == 0:
                return ast.copy_location(ast.Constant(0), iterated), ()
            return _of_loop(inner, iterated.args[0], name)
        if called == "zip" and steps and steps[0] < len(iterated.args):
            return iterated.args[steps[0]], (ELEMENT, *steps[1:])
        if called in ("reversed", "sorted", "list") and iterated.args:
            return iterated.args[0], (ELEMENT, *steps)
        if called in ("items", "values") and isinstance(iterated.func, ast.Attribute):
            if called == "values" or (steps and steps[0] == 1):
                return iterated.func.value, (ELEMENT, *steps[called == "items" :])
            return None
    return iterated, (ELEMENT, *steps)


def _position(target: ast.AST, name: str) -> Optional[Tuple[int, ...]]:
    """Return where in a target of an assignment a name is; None if nowhere."""
    if isinstance(target, ast.Name):
        return () if target.id == name else None
    if isinstance(target, (ast.Tuple, ast.List)):
        for at, part in enumerate(target.elts):
            steps = _position(part, name)
            if steps is not None:
                return (at, *steps)
    return None
