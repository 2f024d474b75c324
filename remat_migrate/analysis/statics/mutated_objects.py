"""Objects whose attributes change between the calls of a method that a checkpoint wraps.

`jax.checkpoint(self.block)` is traced once for each object: two `self.block` of one object are
equal. An attribute that is assigned later keeps the value that it had at the first call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..names.module import Module
from ..project import Project
from ..sites.subclasses import overrides_of
from ..values.bind import positional_parameters
from ..values.callees import Target, is_pytree, underlying
from ..values.classes import class_chain
from ..values.values import Class, Function, Instance

_MAKING = frozenset({"__init__", "__new__", "__post_init__", "setup"})


def changing_self(project: Project, target: Target) -> ast.Name | None:
    """`self` of a bound method, where it or a method that it calls reads what is assigned later."""
    cls = target.owner
    if cls is None or target.skip == 0 or is_pytree(project.evaluator, cls):
        return None
    parameters = positional_parameters(target.function.node)
    if not parameters:
        return None
    names = [
        n
        for n in ast.walk(target.function.node)
        if isinstance(n, ast.Name) and n.id == parameters[0].arg
    ]
    read = set(_attributes(project, target.function, cls, set()))
    if names and any(_is_assigned(project, cls, name) for name in sorted(read)):
        return names[0]
    return None


def _attributes(
    project: Project, method: Function, cls: Class, seen: set[ast.AST]
) -> Iterator[str]:
    """The attributes of the object that a method reads, and those that it calls on it."""
    parameters = positional_parameters(method.node)
    if not parameters or method.node in seen:
        return
    seen.add(method.node)
    for node in ast.walk(method.node):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr, ctx=ast.Load()):
                if name != parameters[0].arg:
                    continue
                methods = [
                    function
                    for value in overrides_of(project).attribute(Instance(cls), attr).values
                    if isinstance(function := underlying(value), Function)
                ]
                for function in methods:
                    yield from _attributes(project, function, cls, seen)
                if not methods:
                    yield attr


def _is_assigned(project: Project, cls: Class, attr: str) -> bool:
    """Whether an attribute is assigned on an object that exists, which may be one of the class."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == attr
        and not isinstance(node.ctx, ast.Load)
        and not _makes(module, node)
        and _may_be(project, module, node.value, cls)
        for module in project.mentioning([attr])
        for node in module.nodes
    )


def _makes(module: Module, node: ast.Attribute) -> bool:
    function = module.enclosing_function(node)
    return getattr(function, "name", "") in _MAKING


def _may_be(project: Project, module: Module, node: ast.expr, cls: Class) -> bool:
    """Whether an expression may denote an instance of a class, or of one that inherits from it."""
    values = project.values(module, node)
    for value in values:
        if not isinstance(value, Instance) or not isinstance(value.cls, Class):
            return True
        if cls.node in _bases(project, value.cls) or value.cls.node in _bases(project, cls):
            return True
    return not values


def _bases(project: Project, cls: Class) -> set[ast.ClassDef]:
    return {c.node for c in class_chain(project.evaluator, cls) if isinstance(c, Class)}
