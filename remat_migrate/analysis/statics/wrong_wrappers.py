"""Checkpoints that do not support the framework's module that they wrap.

- `jax.checkpoint` hashes what it wraps, but a Flax linen module with variables is not hashable. As
  a decorator of a method, it traces `self`.
- `jax.checkpoint` of a Haiku module creates parameters inside a JAX transformation, so they are
  tracers. `hk.remat` lifts them out.
- `jax.checkpoint` hashes an Equinox module, too.
"""

from __future__ import annotations

import ast
from typing import Literal

from ..names.module import FunctionNode, Module, find_mentions, last_name, own_nodes
from ..project import Project
from ..sites.framework_modules import (
    ModuleKind,
    framework_of,
    holds_arrays,
    is_made,
    kind_of,
    module_kind,
    module_kinds,
)
from ..sites.site import Site
from ..values.values import Class, External, Function, Value, underlying
from .static_options import static_site

Fault = Literal["linen-instance", "linen-method", "haiku", "equinox"]

# Since this release, a checkpoint hashes Equinox modules.
_HASHED_SINCE = (0, 4, 36)
_PARAMETERS = frozenset({"haiku.get_parameter", "haiku.get_state"})


def wrong_wrapper(project: Project, site: Site) -> Fault | None:
    """Return what is wrong with the Api of a site, if it is certain."""
    if site.subject is None or site.application is None or not site.certain:
        return None
    if not site.api.startswith("jax."):
        return None  # a project's own wrappers may do anything
    module, subject = site.subject
    if isinstance(subject, ast.FunctionDef | ast.AsyncFunctionDef):
        return _decorated(project, site, module, subject)
    if isinstance(subject, ast.expr) and module is site.module:
        return _applied(project, site, module, subject)
    return None


def _decorated(
    project: Project, site: Site, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> Fault | None:
    """Find `@jax.checkpoint` on a method of a Flax linen module that traces `self`."""
    cls = module.enclosing_class(node)
    if cls is None or site.definition.modules is not None or site.spread:
        return None
    if framework_of(project.evaluator, Class(module, cls)) != "linen":
        return None
    plain = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
    if plain & {"staticmethod", "classmethod", "property"} or not node.args.args:
        return None
    if {"static_argnames", "concrete"} & set(site.arguments):
        return None
    if "static_argnums" in site.arguments:
        static = static_site(project, site)
        if static is None or any(p.position == 0 or p.index < 0 for p in static.static):
            return None
    return "linen-method"


def _applied(project: Project, site: Site, module: Module, subject: ast.expr) -> Fault | None:
    kinds = module_kinds(project, module, subject)
    kind = next(iter(kinds), None)
    if kind is None or kind.framework == "haiku":
        creates = _creates_parameters(project, site, module, subject, kind)
        return "haiku" if creates else None
    if kind.form == "class":
        return None
    match kind.framework:
        case "linen" if kind.form != "method" and _in_linen_method(project, module, site.reference):
            return "linen-instance"
        case "equinox" if all(holds_arrays(project, one.cls) for one in kinds):
            if project.jax_version(module.source.path) >= _HASHED_SINCE:
                return "equinox"
    return None


def _in_linen_method(project: Project, module: Module, node: ast.AST) -> bool:
    functions = (a for a in module.ancestors(node) if isinstance(a, FunctionNode))
    cls = next(filter(None, map(module.enclosing_class, functions)), None)
    return cls is not None and framework_of(project.evaluator, Class(module, cls)) == "linen"


def _creates_parameters(
    project: Project, site: Site, module: Module, subject: ast.expr, kind: ModuleKind | None
) -> bool:
    """Return whether the wrapped code certainly creates Haiku parameters, at initialization."""
    around = [a for a in module.ancestors(site.reference) if isinstance(a, FunctionNode)]
    initialized = find_mentions(module).attributes.get("running_init", ())
    if not around or any(around[-1] in module.ancestors(node) for node in initialized):
        return False
    if kind is not None and not isinstance(subject, ast.Call):
        # A module that is passed in, or called elsewhere, too, may have its parameters already.
        text, scope = module.segment(subject), module.enclosing_class(around[0]) or around[0]
        calls = (node for node in ast.walk(scope) if isinstance(node, ast.Call))
        if not is_made(project, module, subject) or any(
            module.segment(call.func) == text for call in calls
        ):
            return False
    values = project.values(module, subject)
    return bool(values) and all(_makes_parameters(project, value) for value in values)


def _makes_parameters(project: Project, value: Value) -> bool:
    """Return whether what runs calls a Haiku module that is its own, or creates a parameter."""
    kind, function = kind_of(project.evaluator, value), underlying(value)
    if kind is not None and kind.form == "instance":
        return True
    if not isinstance(function, Function):
        return False
    stack: list[ast.AST] = [function.node]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Call):
            called = project.values(function.module, node.func)
            if _PARAMETERS & project.qualified(function.module, node.func):
                return True
            kinds = [kind_of(project.evaluator, v) for v in called]
            own = kind is not None or isinstance(node.func, ast.Call)  # `hk.Linear(3)(x)`
            if own and any(k is not None and k.framework == "haiku" for k in kinds):
                return True
        stack += (
            inner
            for inner in ast.iter_child_nodes(node)
            if not isinstance(inner, FunctionNode | ast.ClassDef | ast.If | ast.IfExp)
        )
    return False


def use_of_module(project: Project, function: Function) -> tuple[str, ast.Call] | None:
    """Return where a function calls a module of "linen" or "haiku", whose parameters
    `jax.checkpoint` does not lift.
    """
    for node in own_nodes(function.node):
        if isinstance(node, ast.Call):
            for value in project.values(function.module, node.func):
                if isinstance(value, External) and value.name in _PARAMETERS:
                    return "haiku", node
                kind = kind_of(project.evaluator, value)
                if kind is not None and kind.framework in ("linen", "haiku"):
                    return kind.framework, node
    return None


def wrapped_instance(project: Project, site: Site) -> ModuleKind | None:
    """Return the instance or bound method that a site of Flax wraps, if its Api does not accept
    one.
    """
    if site.definition.modules != "linen" or site.definition.takes_instances:
        return None
    module, subject = site.subject or (site.module, None)
    if not isinstance(subject, ast.expr):
        return None
    kind = module_kind(project, module, subject)
    if kind is None or kind.framework != "linen" or kind.form == "class":
        return None
    if kind.form == "instance":
        return kind if is_made(project, module, subject) else None
    match site.application and site.module.parent(site.application):
        case ast.Call(func=func, args=[first, *_]) if func is site.application:
            # If a call may pass a module first, Flax lifts that one.
            if not isinstance(first, ast.Starred) and not module_kind(project, module, first):
                return None if last_name(first) in ("mdl", "module", "scope") else kind
    return None
