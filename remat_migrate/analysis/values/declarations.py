"""What declarations say: the decorators, fields and assignments of a class, and the annotations and
defaults of parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal

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
            for target, given in (pair for one in targets for pair in _pairs(one, value)):
                match target:
                    case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == first.arg:
                        found[attr] = (*found.get(attr, ()), given)
    return found


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of an assignment with their values: two of `a, b = x, y`."""
    match target, value:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            for pair in zip(targets, values, strict=True):
                yield from _pairs(*pair)
        case _:
            yield target, value


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


Kind = Literal["python", "array", "unknown"]

_ARRAYS = frozenset(
    {
        "Array", "ndarray", "ArrayLike", "DeviceArray", "ArrayTree", "PyTree", "Params", "KeyArray",
        "PRNGKey", "PRNGKeyArray", "Float", "Int", "Bool", "Shaped", "Num", "Inexact", "Integer",
        "Key", "UInt", "FrozenDict", "TrainState", "ArrayDType",
    }
)  # fmt: skip
_PYTHON = frozenset({"bool", "int", "str", "bytes", "Callable", "type", "Type", "Literal", "slice"})
_WRAPPERS = frozenset({"Optional", "Final", "Union", "ClassVar"})
_SEQUENCES = frozenset({"Tuple", "tuple", "Sequence", "List", "list"})


def join(kinds: list[Kind]) -> Kind:
    """Return the kind of a value that is one of several."""
    if "array" in kinds:
        return "array"
    return "python" if kinds and all(k == "python" for k in kinds) else "unknown"


def annotation_kind(annotation: ast.expr | None) -> Kind:
    """Return what a type annotation says; `float` says nothing, because JAX scalars pass for
    floats.
    """
    match annotation:
        case ast.Constant(value=str(text)):
            try:
                return annotation_kind(ast.parse(text, mode="eval").body)
            except SyntaxError:
                return "unknown"
        case ast.Constant(value=None):
            return "python"
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return "python" if name in _PYTHON else "array" if name in _ARRAYS else "unknown"
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            if name == "Annotated":
                return annotation_kind(parts[0])
            if name in _SEQUENCES:
                parts = [part for part in parts if not isinstance(part, ast.Constant)]
            elif name not in _WRAPPERS:
                return annotation_kind(annotation.value)
            return join([annotation_kind(part) for part in parts])
        case ast.BinOp(op=ast.BitOr()):
            return join([annotation_kind(annotation.left), annotation_kind(annotation.right)])
    return "unknown"


def default_kind(default: ast.expr | None) -> Kind:
    """Return what a default says: `False`, `1`, and `"mean"` are Python values; `None` and floats
    say nothing.
    """
    match default:
        case ast.Constant(value=None | float()) | None:
            return "unknown"
        case ast.Constant() | ast.Lambda():
            return "python"
        case ast.UnaryOp(operand=ast.Constant(value=int())):
            return "python"
        case ast.Tuple(elts=[_, *_] as parts):
            return join([default_kind(p) for p in parts])
    return "unknown"
