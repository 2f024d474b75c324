"""The function that calling a value runs in the end, the arguments bound already, and what the
fields of new objects are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...libraries.apis import TRACED_BODIES
from ..names.module import Module, last_name, once
from .bind import bind_call, with_partials
from .declarations import self_assignments
from .evaluator import Evaluator, class_chain, project_bases
from .values import (
    APPLY,
    Applied,
    Bound,
    Class,
    External,
    Function,
    Instance,
    Partial,
    Value,
    Wrapped,
    layers,
    leading_arguments,
)


@dataclass(frozen=True, slots=True)
class Target:
    """A function that a checkpoint wraps, as it is called.

    Attributes:
        function: the function or method.
        owner: the class whose instance is called, or whose method.
        skip: how many leading parameters the caller does not pass: `self`, arguments of partials.
        given: the parameters that partials pass by keyword.
    """

    function: Function
    owner: Class | None = None
    skip: int = 0
    given: frozenset[str] = frozenset()


def targets_of(evaluator: Evaluator, value: Value | None) -> Iterator[Target]:
    """Yield the functions that calling `value` runs; for a class, its `__call__`."""
    skip = 0
    given: frozenset[str] = frozenset()
    while isinstance(value, Applied | Wrapped | Partial):  # there may be many
        if isinstance(value, Partial):
            skip += len(value.call.args) - 1
            given |= {k.arg for k in value.call.keywords if k.arg is not None}
        value = value.target if isinstance(value, Applied) else value.func
    for target in _targets_of(evaluator, value):
        if skip or given:
            target = replace(target, skip=target.skip + skip, given=target.given | given)
        yield target


def _targets_of(evaluator: Evaluator, value: Value | None) -> Iterator[Target]:
    match value:
        case Function(module=module, node=node):
            cls = module.enclosing_class(node)
            yield Target(value, Class(module, cls, exact=False) if cls is not None else None)
        case Bound(func=inner, receiver=receiver):
            for target in targets_of(evaluator, inner):
                owner = class_of(receiver) if target.owner is not None else None
                yield replace(target, owner=owner or target.owner, skip=target.skip + 1)
        case Class():
            for found in evaluator.attribute(Instance(value), "__call__"):
                for target in targets_of(evaluator, found):
                    yield Target(target.function, value, target.skip)
        case Instance(cls=Class() as cls):
            yield from targets_of(evaluator, cls)
        case Instance(cls=Applied(target=inner) | Wrapped(func=inner)):
            yield from targets_of(evaluator, inner)


def applied_module(value: Value) -> tuple[Instance, int] | None:
    """Return what a call of `apply` or `init` runs, and how many arguments precede its own.

    For a Flax module that is `__call__`, for `haiku.transform(f)` it is `f`.
    """
    match value:
        case Bound(func=External(name), receiver=Instance() as model):
            method = name.rpartition(".")[2]
            if method in APPLY:
                return model, leading_arguments(method, model)
    return None


def bodies_of(evaluator: Evaluator, module: Module, call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call of a JAX loop that are its bodies; none for other calls."""
    values = evaluator.values(module, call.func)
    names = (v.name for v in values if isinstance(v, External) and v.name in TRACED_BODIES)
    positions = TRACED_BODIES.get(next(names, ""), ())
    return [body for position in positions for body in call.args[position : position + 1]]


def is_pytree(evaluator: Evaluator, cls: Class) -> bool:
    """Return whether instances of a class can be arguments of a JAX function.

    Decided by its bases (NamedTuple, Equinox, Flax struct and nnx) and by its registration.
    """
    for owner in class_chain(evaluator, cls):
        if isinstance(owner, External):
            if owner.name in _PYTREE_BASES or owner.name.rpartition(".")[2] == "Pytree":
                return True
            if owner.name.partition(".")[0] not in _NO_PYTREE_BASES:
                return True  # unknown base: leave it as it is
            continue
        if not isinstance(owner, Class):
            continue
        for decorator in owner.node.decorator_list:
            callee = decorator.func if isinstance(decorator, ast.Call) else decorator
            for value in evaluator.values(owner.module, callee):
                if isinstance(value, External) and value.name in _PYTREE_DECORATORS:
                    return True
        if owner.node.name in _registered(owner.module):
            return True
    return False


@once
def _registered(module: Module) -> frozenset[str]:
    """Return the names that a module passes to functions such as `register_pytree_node`."""
    return frozenset(
        argument.id
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr.startswith("register_")
        for argument in node.args
        if isinstance(argument, ast.Name)
    )


def is_frozen(evaluator: Evaluator, cls: Class) -> bool:
    """Return whether instances of a class are values: immutable, and equal only if they are the
    same.
    """
    bases = class_chain(evaluator, cls)
    return any(isinstance(base, External) and base.name.startswith("enum.") for base in bases)


_PYTREE_BASES = frozenset(
    {
        "typing.NamedTuple", "equinox.Module", "flax.struct.PyTreeNode", "flax.nnx.Module",
        "flax.nnx.Object", "flax.nnx.Pytree",
    }
)  # fmt: skip
# Packages whose base classes do not make pytrees: to JAX, a subclass of `dict` is as opaque as an
# object.
_NO_PYTREE_BASES = frozenset({"builtins", "flax", "haiku", "typing", "abc"})
_PYTREE_DECORATORS = frozenset(
    {
        "flax.struct.dataclass", "chex.dataclass", "jax.tree_util.register_pytree_node_class",
        "jax.tree_util.register_dataclass", "jax.tree_util.register_static",
        "jax_dataclasses.pytree_dataclass", "simple_pytree.dataclass", "functools.partial",
    }
)  # fmt: skip


def class_of(value: Value) -> Class | None:
    """Return the class of an instance, or a class itself, if it is the project's."""
    cls = value.cls if isinstance(value, Instance) else value
    return cls if isinstance(cls, Class) else None


def receiver_of(value: Value | None) -> Class | None:
    """Return the class of the object that a method is bound to."""
    bound = (layer.receiver for layer in layers(value) if isinstance(layer, Bound))
    return next((cls for cls in map(class_of, bound) if cls is not None), None)


def skipped(value: Value | None) -> int:
    """Return how many leading parameters are bound already (`self`)."""
    return int(any(isinstance(layer, Bound) for layer in layers(value)))


def partial_calls(value: Value | None) -> Iterator[ast.Call]:
    """Return the calls of `functools.partial` on the way to the function, outermost first."""
    return (layer.call for layer in layers(value) if isinstance(layer, Partial))


def full_arguments(value: Value | None, node: ast.Call) -> tuple[list[ast.expr], list[ast.keyword]]:
    """Return the arguments of a call together with those of partials on the way."""
    return with_partials(node.args, node.keywords, partial_calls(value))


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
