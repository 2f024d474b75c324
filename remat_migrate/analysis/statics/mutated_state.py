"""Names and attributes that a function reads and that change between its calls.

JAX traces a checkpointed function once for equal static arguments and shapes, and remembers the
result: what the function reads from outside is read at the first call only. It traces
`jax.checkpoint(self.f)` once for each object, since two `self.f` of one object are equal, and a
function that is created anew for each call at each call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from ..names.module import Module
from ..names.scopes import FunctionNode
from ..project import Project
from ..sites.subclasses import overrides_of
from ..values.bind import positional_parameters
from ..values.callees import Target, is_pytree, underlying
from ..values.classes import class_chain
from ..values.values import Class, Function, Instance, ModuleValue

_INITIALISERS = frozenset({"__init__", "__new__", "__post_init__", "setup"})


def changing_name(project: Project, module: Module, function: FunctionNode) -> ast.Name | None:
    """Return a name that a function reads from outside and that may change between calls.

    For `settings.training`, this is `settings`, if something assigns to that name of the module.
    """
    inside = {function, *(n for n in ast.walk(function) if isinstance(n, FunctionNode))}
    root = module.scope_of(module.tree)
    for node in ast.walk(function):
        if isinstance(node, ast.Nonlocal):
            for name in ast.walk(function):
                if isinstance(name, ast.Name) and name.id in node.names:
                    return name
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if isinstance(node.value, ast.Name) and _is_module_name_assigned(project, module, node):
                return node.value
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        bindings = module.reaching(node)
        if not bindings or any(b.scope.node in inside for b in bindings):
            continue
        if all(b.kind in ("def", "class", "import") for b in bindings):
            continue
        scopes = (root, *(b.scope for b in bindings))
        if any(module.is_written_elsewhere(scope, node.id) for scope in scopes):
            return node
        if any(
            b.scope.parent is not None and getattr(b.node, "lineno", 0) > function.lineno
            for b in bindings
        ):
            return node
    return None


def _is_module_name_assigned(project: Project, module: Module, node: ast.Attribute) -> bool:
    """Return whether a function or another module assigns to the module-level name of `node`."""
    for value in project.values(module, node.value):
        if not isinstance(value, ModuleValue):
            continue
        owner = value.module
        if owner.is_written_elsewhere(owner.scope_of(owner.tree), node.attr):
            return True
        if any(
            value in project.values(other, target.value)
            for other, target in _attributes_written(project, node.attr)
            if isinstance(target.ctx, ast.Store)
        ):
            return True
    return False


def _attributes_written(project: Project, name: str) -> Iterator[tuple[Module, ast.Attribute]]:
    """Yield the assignments to, and deletions of, attributes of a name."""
    for module in project.mentioning([name]):
        for node in module.nodes:
            if isinstance(node, ast.Attribute) and node.attr == name:
                if not isinstance(node.ctx, ast.Load):
                    yield module, node


def changing_self(project: Project, target: Target) -> ast.Name | None:
    """Return `self` of a bound method if it reads an attribute that is assigned later."""
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
    read = set(_attributes_read(project, target.function, cls, set()))
    if names and any(_is_attribute_assigned(project, cls, name) for name in sorted(read)):
        return names[0]
    return None


def _attributes_read(
    project: Project, method: Function, cls: Class, seen: set[ast.AST]
) -> Iterator[str]:
    """Yield the attributes of its object that a method reads, directly or by calling others."""
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
                    yield from _attributes_read(project, function, cls, seen)
                if not methods:
                    yield attr


def _is_attribute_assigned(project: Project, cls: Class, attr: str) -> bool:
    """Return whether an attribute of an existing object, maybe of the class, is assigned."""
    return any(
        getattr(module.enclosing_function(node), "name", "") not in _INITIALISERS
        and _may_be_instance(project, module, node.value, cls)
        and _may_get_instances(project, module.source.path, cls.module.source.path)
        for module, node in _attributes_written(project, attr)
    )


def _may_be_instance(project: Project, module: Module, node: ast.expr, cls: Class) -> bool:
    """Return whether an expression may be an instance of a class, its bases or subclasses."""
    values = project.values(module, node)
    for value in values:
        if not isinstance(value, Instance) or not isinstance(value.cls, Class):
            return True
        if cls.node in _bases(project, value.cls) or value.cls.node in _bases(project, cls):
            return True
    return not values


def _may_get_instances(project: Project, user: Path, home: Path) -> bool:
    """Return whether imports connect a file with the one that defines a class.

    One imports the other, or a file imports both. A repository holds unrelated programs, too.
    """
    imports = project.prefilter.imports_any
    if user == home or imports(user, [home], {}) or imports(home, [user], {}):
        return True
    name = user.parent.name if user.name == "__init__.py" else user.stem
    return any(
        imports(path, [user], {}) and imports(path, [home], {})
        for path in project.files.mentioning([name])
    )


def _bases(project: Project, cls: Class) -> set[ast.ClassDef]:
    return {c.node for c in class_chain(project.evaluator, cls) if isinstance(c, Class)}


def changes_later(module: Module, node: ast.expr) -> ast.Name | None:
    """Return a name in an expression that may change before a nested function evaluates it."""
    for name in ast.walk(node):
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load):
            bindings = module.reaching(name)
            if any(b.kind in ("element", "with", "opaque", "augment") for b in bindings):
                return name
            scope = module.scope_at(name)
            if scope.is_function and len(module.visible(name.id, scope)) > 1:
                return name
            if any(_in_loop(module, b.node, scope.node) for b in bindings):
                return name
    return None


def _in_loop(module: Module, node: ast.AST, within: ast.AST) -> bool:
    for around in module.ancestors(node):
        if around is within:
            return False
        if isinstance(around, ast.For | ast.While | ast.AsyncFor):
            return True
    return False
