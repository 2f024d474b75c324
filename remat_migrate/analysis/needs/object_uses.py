"""Arguments that a function uses as objects: it calls them, or a method that arrays do not have.

JAX cannot trace a function or a plain object. It can trace a pytree, such as an Equinox module, if
all of its leaves are arrays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ...libraries.library_arguments import CONCRETE_METHODS
from ...libraries.library_needs import array_method
from ..values.callees import is_pytree
from ..values.containers import sources
from ..values.declarations import annotation_kind
from ..values.evaluator import Evaluator, class_chain
from ..values.static_fields import is_declared_static
from ..values.values import Bound, Class, External, Instance, Parameter, Value
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
# Modules that contain functions, numbers, or flags besides arrays.
_NOT_ARRAYS_ALONE = frozenset(
    f"equinox.nn.{name}"
    for name in (
        "BatchNorm", "Dropout", "Lambda", "MLP", "MultiheadAttention", "Pool", "Sequential",
        "SpectralNorm", "StatefulLayer",
    )
)  # fmt: skip


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
    if not is_part(analysis, held):
        return None
    called = analysis.evaluator.values(analysis.module, func)
    seen = [v.receiver if isinstance(v, Bound) else v for v in called]
    return None if are_trees(analysis.evaluator, seen) else held


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


def are_trees(evaluator: Evaluator, values: Iterable[Value]) -> bool:
    """Return whether values are known, and all are pytrees of arrays."""
    seen = [value for value in values if not isinstance(value, Parameter)]
    return bool(seen) and all(_is_tree(evaluator, value) for value in seen)


def _is_tree(evaluator: Evaluator, value: Value) -> bool:
    match value:
        case Instance(cls=External(name)):
            return name.startswith(("equinox.nn.", "flax.nnx.")) and name not in _NOT_ARRAYS_ALONE
        case Instance(cls=Class() as cls):
            return is_pytree(evaluator, cls) and all(
                _is_array_field(evaluator, owner, statement)
                for owner in class_chain(evaluator, cls)
                if isinstance(owner, Class)
                for statement in owner.node.body
                if isinstance(statement, ast.AnnAssign)
            )
    return False


def _is_array_field(evaluator: Evaluator, owner: Class, field: ast.AnnAssign) -> bool:
    """Return whether a field holds arrays, or is declared static."""
    if is_declared_static(field) or annotation_kind(field.annotation) == "array":
        return True
    named = evaluator.values(owner.module, field.annotation)
    return are_trees(evaluator, (Instance(value) for value in named))
