"""Branches that the target version of JAX does not take, by the test of an `if` around them."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..text import Span
from .names.module import Module
from .project import Project

_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_VERSIONS = ("__version__", "__version_info__")


def is_dead(project: Project, path: Path, offset: int) -> bool:
    """Return whether a place in a file is code that the target version of JAX does not run."""
    module = project.modules.get(path)
    if module is None:
        return False
    dead = project.once(_dead_branches, module, project.jax_version(path))
    return any(span.start <= offset < span.end for span in dead)


def _dead_branches(_: Project, module: Module, version: tuple[int, ...]) -> list[Span]:
    """Return the places of code that does not run under a version of JAX."""
    if not any(name in module.source.text for name in _VERSIONS):
        return []
    found = []
    for node in module.nodes:
        if isinstance(node, ast.If | ast.IfExp):
            taken = _test(module, node.test, version)
            if taken is not None:
                dead = node.orelse if taken else node.body
                parts = dead if isinstance(dead, list) else [dead]
                found += [module.span(part) for part in parts]
    return found


def _test(module: Module, test: ast.expr, version: tuple[int, ...]) -> bool | None:
    """Return the value of a comparison of JAX's version; None for other tests."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            taken = _test(module, inner, version)
            return None if taken is None else not taken
        case ast.Name() if (value := _assigned(module, test)) is not None:
            return _test(module, value, version)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
            compared = _COMPARED[type(op)]
            if not _is_version(module, left):
                return None
            if isinstance(left, ast.Attribute) and isinstance(right, ast.Constant):
                return compared(".".join(map(str, version)), str(right.value))
            other = _numbers(right)
            return compared(version[: len(other)], other) if other else None
    return None


def _assigned(module: Module, name: ast.Name) -> ast.expr | None:
    values = [binding.value for binding in module.reaching(name) if not binding.path]
    return values[0] if len(values) == 1 else None


def _is_version(module: Module, node: ast.expr) -> bool:
    """Return whether an expression is computed from JAX's version."""
    for part in ast.walk(node):
        match part:
            case ast.Subscript(slice=index) if not isinstance(index, ast.Slice):
                return False  # the minor version alone
            case ast.Attribute(value=ast.Name(id="jax" | "jaxlib"), attr=attr) if attr in _VERSIONS:
                return True
            case ast.Name() if (value := _assigned(module, part)) is not None and part is node:
                return _is_version(module, value)
    return False


def _numbers(node: ast.expr) -> tuple[int, ...]:
    """Return the version that is written out in an expression: `(0, 4, 1)`, `Version("0.4.1")`."""
    parts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    if len(parts) == 1 and isinstance(parts[0], str):
        return tuple(map(int, re.findall(r"\d+", parts[0])[:3]))
    numbers = tuple(part for part in parts if type(part) is int)
    return numbers if len(numbers) == len(parts) and isinstance(node, ast.Tuple) else ()
