"""Collects the arrays that a unit computes, as the result of one that returns nothing.

A test or a `main` only checks or prints what it computes. In files with edited pieces, the calls
that a unit makes itself, not those of functions inside it, note what they return.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from typing import Any, Callable, Iterator, List, Optional

NAME = "__remat_migrate_computed__"
# Loops may compute any number of arrays.
_MOST = 200

_unit = ""
_collected: Optional[List[Any]] = None


def begin(unit: str) -> None:
    """Collect what the unit with this qualified name computes from now on."""
    global _unit
    _unit = unit


@contextlib.contextmanager
def collecting() -> Iterator[List[Any]]:
    """Give the arrays that calls of the unit return meanwhile, in the order of the calls."""
    global _collected
    before, _collected = _collected, []
    try:
        yield _collected
    finally:
        _collected = before


def result_of(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return the result of a call; if that is None, the arrays that the unit computed in it."""
    with collecting() as arrays:
        result = function(*args, **kwargs)
    return (arrays or None) if result is None else result


def note(unit: str, value: Any) -> Any:
    """Note what a call in a unit returned, and return it."""
    if unit == _unit and _collected is not None and len(_collected) < _MOST:
        jax = sys.modules["jax"]
        try:
            leaves = jax.tree_util.tree_leaves(value)
        except (TypeError, ValueError):
            return value  # such as a dict with keys that have no order
        _collected.extend(
            leaf for leaf in leaves if isinstance(leaf, jax.Array) or _is_literal(leaf)
        )
    return value


def _is_literal(leaf: Any) -> bool:
    """Return whether this is a number of JAX's own type, which checkpoints return for constants."""
    return isinstance(leaf, (int, float, complex)) and type(leaf).__module__.startswith("jax.")


class Calls:
    """Puts the notes into a tree: `visit` each definition and each call, from the inside out."""

    def __init__(self) -> None:
        self._around: List[ast.AST] = []

    def enter(self, node: ast.AST) -> None:
        """Begin with a node."""
        if isinstance(node, _SCOPES):
            self._around.append(node)

    def leave(self, node: ast.AST) -> None:
        """End with a node."""
        if isinstance(node, _SCOPES):
            self._around.pop()

    def noted(self, call: ast.expr) -> ast.expr:
        """Return a call with a note of what it returns, if a unit makes it itself."""
        if not isinstance(call, ast.Call) or not self._around:
            return call
        *classes, function = self._around
        if not isinstance(function, _FUNCTIONS):
            return call
        names = [each.name for each in classes if isinstance(each, ast.ClassDef)]
        if len(names) < len(classes):
            return call
        name = ".".join([*names, function.name])
        arguments: List[ast.expr] = [ast.Constant(name), call]
        return ast.copy_location(ast.Call(ast.Name(NAME, ast.Load()), arguments, []), call)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef, ast.Lambda)
