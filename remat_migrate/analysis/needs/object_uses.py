"""Arguments that a function uses as objects: it calls them, or a method that arrays do not have.

JAX cannot trace a function or a plain object. It can trace a pytree, such as an Equinox module, if
all of its leaves are arrays, which is not decided here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...libraries.library_arguments import CONCRETE_METHODS
from ...libraries.library_needs import array_method
from ..values.containers import sources
from .dependence_analysis import DependenceAnalysis

_CONTAINER_METHODS = frozenset(
    (*dir(dict), *dir(list), *dir(tuple), *dir(set), "_replace", "_asdict", "replace", "unfreeze")
)
# Methods of containers that return None.
_MUTATING_METHODS = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "remove", "reverse", "sort", "update"}
)
# Methods that change their object, and return what they take or find.
_TAKING_METHODS = frozenset({"pop", "popitem", "popleft", "setdefault", "appendleft"})


def called_object(analysis: DependenceAnalysis, call: ast.Call) -> ast.expr | None:
    """Return the argument, or the part of one, that a call uses as an object."""
    func = held = call.func
    if isinstance(func, ast.Attribute):
        if array_method(func) is not None or func.attr in CONCRETE_METHODS:
            return None
        is_used = not isinstance(analysis.module.parent(call), ast.Expr)
        if func.attr in _CONTAINER_METHODS and not (is_used and func.attr in _MUTATING_METHODS):
            return None
        held = func.value
    return held if is_part(analysis, held) else None


def changes_in_place(node: ast.AST) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Yield the objects that a statement or call changes in place, with what it stores there."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                for part in parts:
                    if isinstance(part, ast.Subscript | ast.Attribute):
                        yield part.value, [value]
        case ast.AugAssign(target=ast.Subscript() | ast.Attribute() as target, value=value):
            yield target.value, [value]
        case ast.AugAssign(target=ast.Name() as name, value=ast.List() as value):
            yield name, [value]
        case ast.Delete(targets=targets):
            for target in targets:
                if isinstance(target, ast.Subscript | ast.Attribute):
                    yield target.value, []
        case ast.Expr(ast.Call(func=ast.Attribute(value=held, attr=attr)) as call):
            if attr in _MUTATING_METHODS:
                yield held, [*call.args, *(keyword.value for keyword in call.keywords)]
        case ast.Call(func=ast.Name(id="setattr" | "delattr" | "next"), args=[held, *put]):
            yield held, put
        case ast.Call(func=ast.Attribute(value=held, attr=attr), args=args):
            if attr in _TAKING_METHODS:
                yield held, args[1:] if attr in ("pop", "setdefault") else args


def is_part(analysis: DependenceAnalysis, node: ast.expr) -> bool:
    """Return whether an expression is an argument, or an item, attribute or element of one."""
    return any(
        binding.kind == "parameter" and analysis.contains(binding.scope.node)
        for binding in sources(analysis.module, node)
    )
