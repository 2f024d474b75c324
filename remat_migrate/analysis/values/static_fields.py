"""What a new object has in a field; and fields of pytrees that JAX does not trace: static fields,
and the auxiliary data of a node.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .bind import bind_call
from .callees import is_pytree
from .classes import self_assignments
from .evaluator import Evaluator, class_chain
from .values import Class, External

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
    for owner in class_chain(evaluator, cls):
        if not isinstance(owner, Class):
            continue
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
    """Return whether a field of a pytree keeps its value where the pytree is traced."""
    return is_pytree(evaluator, cls) and any(
        name in _static_fields(evaluator, owner)
        for owner in class_chain(evaluator, cls)
        if isinstance(owner, Class)
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


def _static_fields(evaluator: Evaluator, cls: Class) -> set[str]:
    found: set[str] = set()
    for statement in cls.node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) if is_declared_static(statement):
                found.add(name)
            case ast.FunctionDef(name="tree_flatten"):
                found |= _auxiliary(statement)
    calls = [
        node
        for node in cls.module.nodes
        if isinstance(node, ast.Call) and node.args[:1] and _is_name(node.args[0], cls.node.name)
    ]
    for call in (*(d for d in cls.node.decorator_list if isinstance(d, ast.Call)), *calls):
        registers = [call.func, *call.args[:1]]  # also `partial(register_dataclass, ...)`
        values = {v for node in registers for v in evaluator.values(cls.module, node)}
        names = {v.name.rpartition(".")[2] for v in values if isinstance(v, External)}
        if "register_dataclass" in names:
            for keyword in call.keywords:
                if keyword.arg == "meta_fields":
                    found |= _texts(keyword.value)
        elif names & {"register_pytree_node", "register_pytree_with_keys"} and len(call.args) > 1:
            for value in evaluator.values(cls.module, call.args[1]):
                found |= _auxiliary(getattr(value, "node", None))
    return found


def _texts(node: ast.expr) -> set[str]:
    constants = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
    return {value for value in constants if isinstance(value, str)}


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _auxiliary(flatten: object) -> set[str]:
    """Return the attributes that a function returns as auxiliary data: `(children, aux)`."""
    match flatten:
        case ast.Lambda(body=ast.Tuple(elts=[children, aux])):
            pass
        case ast.FunctionDef(body=[*_, ast.Return(value=ast.Tuple(elts=[children, aux]))]):
            pass
        case _:
            return set()
    traced, static = (
        {n.attr for n in ast.walk(part) if isinstance(n, ast.Attribute)} for part in (children, aux)
    )
    return static - traced
