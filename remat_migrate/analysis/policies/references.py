"""What a project reads of JAX: names in `jax.checkpoint_policies`, and the flag `jax_remat3`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ..names.module import Module
from ..project import Project
from ..values.values import External
from .known_policies import NAMESPACE
from .values import is_namespace, sole_origin, strings_of


@dataclass(frozen=True, eq=False, slots=True)
class PolicyName:
    """A name read from `jax.checkpoint_policies`.

    Attributes:
        node: the attribute, or the `getattr` call.
        name: the name.
        written: the attribute or string that holds the name, if it may be changed.
        default: the default of `getattr`.
    """

    node: ast.expr
    name: str
    written: ast.Attribute | ast.Constant | None = None
    default: ast.expr | None = None


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
            # One of several names, or of a field that may be set, may stand for no policy.
            only = strings_of(project, module, asked).only
            if only is not None:
                written = _written_name(module, asked, only)
                yield PolicyName(node, only, written, default[0] if default else None)


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
            case ast.Try(handlers=[_, *_]):
                return True
            case ast.If(test=test) | ast.IfExp(test=test):
                asked = ast.unparse(test)
                if "version" in asked or "hasattr" in asked:
                    return True
    return False


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


# The flag of the next implementation, which accepts some static arguments that today's rejects.
_NAMES = ("jax_remat3", "JAX_REMAT3")


def uses_next_implementation(project: Project) -> bool:
    """Return whether a module sets the flag by `update`, as an attribute, or in the environment."""
    for module in project.mentioning(_NAMES):
        for node in module.nodes:
            match node:
                case (
                    ast.Call(args=[ast.Constant(value=name), ast.Constant(value=value)])
                    | ast.Assign(
                        targets=[
                            ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name))
                        ],
                        value=ast.Constant(value=value),
                    )
                ) if name in _NAMES and value not in (False, "0", "false", "False"):
                    return True
    return False
