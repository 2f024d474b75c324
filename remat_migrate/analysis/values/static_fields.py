"""Which fields of pytrees are declared static."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..names.mentions import last_name
from .callees import is_pytree
from .evaluator import Evaluator, class_chain
from .values import Class

# `equinox.field(static=True)`, `flax.struct.field(pytree_node=False)`, and the metadata of a
# dataclass field that `jax.tree_util.register_dataclass` reads.
_STATIC = frozenset({("static", True), ("pytree_node", False)})


def is_static_field(evaluator: Evaluator, cls: Class, name: str) -> bool:
    """Return whether a field of a pytree is declared as one that JAX does not trace."""
    return is_pytree(evaluator, cls) and any(
        is_declared_static(statement)
        for owner in class_chain(evaluator, cls)
        if isinstance(owner, Class)
        for statement in owner.node.body
        if isinstance(statement, ast.AnnAssign) and last_name(statement.target) == name
    )


def is_declared_static(field: ast.AnnAssign) -> bool:
    """Return whether a field is declared static."""
    if not isinstance(field.value, ast.Call):
        return False
    return any(
        (key, value.value) in _STATIC
        for part in ast.walk(field.value)
        for key, value in _pairs(part)
        if isinstance(value, ast.Constant)
    )


def _pairs(node: ast.AST) -> Iterator[tuple[object, ast.expr]]:
    match node:
        case ast.keyword(arg=str(key), value=value):
            yield key, value
        case ast.Dict():
            for name, value in zip(node.keys, node.values, strict=True):
                if isinstance(name, ast.Constant):
                    yield name.value, value
