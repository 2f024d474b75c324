"""Names from outside a function that change between its calls.

JAX traces a checkpointed function once for equal static arguments and shapes, and remembers it:
what the function reads from outside is read at the first call only. A function that is made anew at
each call is traced anew.
"""

from __future__ import annotations

import ast

from ..names.module import Module
from ..names.scopes import FunctionNode
from ..project import Project
from ..values.values import ModuleValue


def changing_name(project: Project, module: Module, function: FunctionNode) -> ast.Name | None:
    """A name that a function reads from around it, and that may have changed at the next call.

    Of `settings.training`, `settings`, where something assigns to that name of the module.
    """
    inside = {function, *(n for n in ast.walk(function) if isinstance(n, FunctionNode))}
    root = module.scope_of(module.tree)
    for node in ast.walk(function):
        if isinstance(node, ast.Nonlocal):
            for name in ast.walk(function):
                if isinstance(name, ast.Name) and name.id in node.names:
                    return name
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if isinstance(node.value, ast.Name) and _is_assigned(project, module, node):
                return node.value
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        bindings = module.reaching(node)
        if not bindings or any(b.scope.node in inside for b in bindings):
            continue
        if all(b.kind in ("def", "class", "import") for b in bindings):
            continue
        if any(
            module.is_written_elsewhere(s, node.id) for s in (root, *(b.scope for b in bindings))
        ):
            return node
        if any(
            b.scope.parent is not None and getattr(b.node, "lineno", 0) > function.lineno
            for b in bindings
        ):
            return node
    return None


def _is_assigned(project: Project, module: Module, node: ast.Attribute) -> bool:
    """Whether a function or another module assigns to the module-level name that `node` reads."""
    for value in project.values(module, node.value):
        if not isinstance(value, ModuleValue):
            continue
        owner = value.module
        if owner.is_written_elsewhere(owner.scope_of(owner.tree), node.attr):
            return True
        for other in project.mentioning([node.attr]):
            for target in other.nodes:
                if (
                    isinstance(target, ast.Attribute)
                    and target.attr == node.attr
                    and isinstance(target.ctx, ast.Store)
                    and value in project.values(other, target.value)
                ):
                    return True
    return False


def _in_loop(module: Module, node: ast.AST, within: ast.AST) -> bool:
    for around in module.ancestors(node):
        if around is within:
            return False
        if isinstance(around, ast.For | ast.While | ast.AsyncFor):
            return True
    return False


def changes_later(module: Module, node: ast.expr) -> ast.Name | None:
    """A name in an expression that means something else if it is evaluated later, in a function."""
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
