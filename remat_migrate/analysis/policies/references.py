"""Reads of names in `jax.checkpoint_policies`: attributes and `getattr`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ..names.module import Module
from ..project import Project
from ..values.values import External
from .known_policies import NAMESPACE
from .values import is_namespace, sole_origin, strings_of

_CATCHES = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError", "Exception"})


@dataclass(frozen=True, eq=False, slots=True)
class PolicyName:
    """A name read from `jax.checkpoint_policies`.

    Attributes:
        node: the attribute, or the `getattr` call.
        name: the name.
        written: the attribute or string that holds the name, if it may be changed.
        default: the default of `getattr`.
        sure: whether the name is the only possible one.
    """

    node: ast.expr
    name: str
    written: ast.Attribute | ast.Constant | None = None
    default: ast.expr | None = None
    sure: bool = True


def policy_names_read(project: Project, module: Module) -> Iterator[PolicyName]:
    """Yield the names that a module reads, in source order, unless it handles their absence."""
    if NAMESPACE.rpartition(".")[2] not in module.source.text:
        return
    found = [read for node in module.nodes for read in _read(project, module, node)]
    for read in sorted(found, key=lambda read: module.span(read.node)):
        if not read.name.startswith("_") and not _is_ready(module, read.node):
            yield read


def is_added(project: Project, name: str) -> bool:
    """Return whether the project itself adds a name to `jax.checkpoint_policies`.

    The first question searches all files, so ask only for names that JAX lacks.
    """
    return name in project.once(_added_names)


def _read(project: Project, module: Module, node: ast.AST) -> Iterator[PolicyName]:
    match node:
        case ast.Attribute(ctx=ast.Load(), value=ast.Name() | ast.Attribute() as base, attr=name):
            if is_namespace(project, module, base):
                yield PolicyName(node, name, node)
        case ast.Call(func=ast.Name(id="getattr"), args=[base, asked, *default], keywords=[]):
            if not is_namespace(project, module, base):
                return
            if External("builtins.getattr") not in project.values(module, node.func):
                return
            if _is_compared(module, node, asked):
                return  # `if self.policy != "none":` stands around it, or `return` before it
            names = strings_of(project, module, asked)
            otherwise = default[0] if default else None
            for name in sorted(names.known):
                written = _written_name(module, asked, name)
                yield PolicyName(node, name, written, otherwise, names.only is not None)


def _written_name(module: Module, asked: ast.expr, name: str) -> ast.Constant | None:
    """Return the string that a name comes from, if it can be replaced there."""
    literal = sole_origin(module, asked) if module.is_own else None
    if isinstance(literal, ast.Constant) and module.segment(literal)[1:-1] == name:
        return literal
    return None  # it has a prefix or escapes, or comes from several places


def _is_ready(module: Module, node: ast.AST) -> bool:
    """Return whether the code handles a JAX without the name, by `try` or by an `if` that tests for
    it.
    """
    for around in module.ancestors(node):
        match around:
            case ast.Try(handlers=handlers, body=body):
                inside = any(node is inner for part in body for inner in ast.walk(part))
                if inside and any(_catches(handler.type) for handler in handlers):
                    return True
            case ast.If(test=test) | ast.IfExp(test=test):
                asked = ast.unparse(test)
                if "version" in asked or "hasattr" in asked:
                    return True
    return False


def _is_compared(module: Module, node: ast.Call, asked: ast.expr) -> bool:
    """Return whether the function also compares or tests the name besides reading the policy."""
    if isinstance(asked, ast.Constant):
        return False
    shown = ast.dump(asked)
    for part in ast.walk(module.enclosing_function(node) or module.tree):
        match part:
            case ast.Compare() as tested:
                pass
            case ast.If(test=tested) | ast.IfExp(test=tested) | ast.While(test=tested):
                pass
            case ast.Match(subject=tested):
                pass
            case _:
                continue
        if any(ast.dump(inner) == shown for inner in ast.walk(tested)):
            return True
    return False


def _catches(caught: ast.expr | None) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(_catches(part) for part in caught.elts)
    return caught is None or (isinstance(caught, ast.Name) and caught.id in _CATCHES)


def _added_names(project: Project) -> frozenset[str]:
    """Return the names that the project itself adds to `jax.checkpoint_policies`."""
    found: set[str] = set()
    for module in project.mentioning(("checkpoint_policies",)):
        for node in module.nodes:
            match node:
                case (
                    ast.Attribute(ctx=ast.Store(), value=base, attr=name)
                    | ast.Call(
                        func=ast.Name(id="setattr"), args=[base, ast.Constant(value=str(name)), _]
                    )
                ) if is_namespace(project, module, base):
                    found.add(name)
    return frozenset(found)
