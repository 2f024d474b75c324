"""What a new object has in a field, and which fields of pytrees are declared static."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..names.mentions import last_name
from .bind import bind_call
from .callees import is_pytree
from .classes import self_assignments
from .evaluator import Evaluator, project_bases
from .values import Class

# `equinox.field(static=True)`, `flax.struct.field(pytree_node=False)`, and the metadata of a
# dataclass field that `jax.tree_util.register_dataclass` reads.
_STATIC = frozenset({("static", True), ("pytree_node", False)})


def field_value(
    evaluator: Evaluator, cls: Class, call: ast.Call, key: str | int
) -> ast.expr | None:
    """Return what a call of a class gives a field, or the field's default; None if that is not
    clear.
    """
    fields: dict[str, ast.expr | None] = {}
    for owner in project_bases(evaluator, cls):
        for method in owner.node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                assigned = self_assignments(owner.node).get(str(key), ())
                bound = bind_call(method, call.args, call.keywords, 1)
                if bound.unclear or len(assigned) != 1 or not isinstance(assigned[0], ast.Name):
                    return None
                return bound.by_name.get(assigned[0].id)
        fields = {**_declared(owner.node), **fields}
    names = list(fields)
    name = names[key] if isinstance(key, int) and 0 <= key < len(names) else str(key)
    spread = any(isinstance(arg, ast.Starred) for arg in call.args)
    if name not in fields or spread or any(k.arg is None for k in call.keywords):
        return None
    given = dict(zip(names, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    return given.get(name, fields[name])


def _declared(cls: ast.ClassDef) -> dict[str, ast.expr | None]:
    """Return the fields in a class body, with their defaults."""
    found: dict[str, ast.expr | None] = {}
    for statement in cls.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(keywords=keywords)):
                found[name] = next((k.value for k in keywords if k.arg == "default"), None)
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                found[name] = value
    return found


def is_static_field(evaluator: Evaluator, cls: Class, name: str) -> bool:
    """Return whether a field of a pytree is declared as one that JAX does not trace."""
    return is_pytree(evaluator, cls) and any(
        is_declared_static(statement)
        for owner in project_bases(evaluator, cls)
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
