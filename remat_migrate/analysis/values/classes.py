"""What the statements of a class show: decorators, what methods assign, and annotated fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache

from .bind import first_parameter


def is_decorated(node: ast.AST, *names: str) -> bool:
    """Return whether a function has a decorator of one of some names."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
        getattr(d, "id", getattr(d, "attr", "")) in names for d in node.decorator_list
    )


@lru_cache(maxsize=4096)
def self_assignments(node: ast.ClassDef) -> Mapping[str, tuple[ast.expr, ...]]:
    """Return what the methods of a class assign to attributes of their first parameter."""
    found: dict[str, tuple[ast.expr, ...]] = {}
    for method in node.body:
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = first_parameter(method)
        if first is None:
            continue
        for inner in _statements(method):
            targets: list[ast.expr]
            match inner:
                case ast.Assign(targets=targets, value=value):
                    pass
                case ast.AnnAssign(value=ast.expr() as value):
                    targets = [inner.target]
                case _:
                    continue
            for target in targets:
                match target:
                    case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == first.arg:
                        found[attr] = (*found.get(attr, ()), value)
    return found


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements inside a function, without looking into expressions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child
            yield from _statements(child)


@lru_cache(maxsize=4096)
def class_annotations(node: ast.ClassDef) -> Mapping[str, ast.expr]:
    """Return the annotated fields in a class body."""
    return {
        s.target.id: s.annotation
        for s in node.body
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
    }
