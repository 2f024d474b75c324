"""Checkpoints that do not support the framework's module that they wrap.

- `jax.checkpoint` hashes what it wraps, but a Flax linen module with variables is not hashable. As
  a decorator of a method, it traces `self`. Up to jax 0.4.35, the wrapped code cannot use
  submodules.
- `jax.checkpoint` of a Haiku module creates parameters inside a JAX transformation, so they are
  tracers. `hk.remat` lifts them out, but raises outside `hk.transform`.
- `jax.checkpoint` hashes an Equinox module, too.
- `nnx.remat` rejects bound methods.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..names.mentions import find_mentions, last_name
from ..names.module import Module, once
from ..names.scopes import FunctionNode
from ..project import Project
from ..sites.framework_modules import framework_of, holds_arrays, kind_of, module_kind
from ..sites.site import Site
from ..values.bind import positional_parameters
from ..values.callees import underlying
from ..values.values import Class, External, Function, Instance
from .static_options import read_indices

Fault = Literal[
    "linen-instance",
    "linen-mixed",
    "linen-method",
    "haiku",
    "haiku-outside",
    "equinox",
    "nnx-bound",
]

# The Apis to check: a project's own wrappers may do anything.
_CHECKED = frozenset(
    {
        "jax.checkpoint",
        "jax.remat",
        "jax.ad_checkpoint.checkpoint",
        "jax.ad_checkpoint.remat",
        "haiku.remat",
        "flax.nnx.remat",
    }
)
# Since this release, a tracer knows its trace, and Flax allows submodules in a checkpoint.
_STACKLESS = (0, 4, 36)
_TRANSFORMS = ("transform", "transform_with_state", "multi_transform", "without_apply_rng")
_PARAMETERS = frozenset({"haiku.get_parameter", "haiku.get_state"})

# Packages whose functions create no parameters.
_PLAIN = ("jax.", "numpy.", "builtins.", "math.")


@dataclass(frozen=True, eq=False, slots=True)
class WrongWrapper:
    """A checkpoint that does not support what it wraps.

    Attributes:
        site: the site.
        fault: what goes wrong.
    """

    site: Site
    fault: Fault


def wrong_wrapper(project: Project, site: Site) -> WrongWrapper | None:
    """Return what is wrong with the Api of a site, if it is certain."""
    if site.subject is None or site.application is None or not site.certain:
        return None
    if site.api not in _CHECKED:
        return None
    module, subject = site.subject
    if site.definition.modules == "haiku":
        outside = module.enclosing_function(site.reference) is None
        return WrongWrapper(site, "haiku-outside") if outside else None
    if isinstance(subject, ast.FunctionDef | ast.AsyncFunctionDef):
        return _decorated(project, site, module, subject)
    if isinstance(subject, ast.expr) and module is site.module:
        return _applied(project, site, module, subject)
    return None


def _decorated(
    project: Project, site: Site, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> WrongWrapper | None:
    """Find `@jax.checkpoint` on a method of a Flax linen module that traces `self`."""
    cls = module.enclosing_class(node)
    if cls is None or site.definition.modules is not None or site.spread:
        return None
    if framework_of(project.evaluator, Class(module, cls)) != "linen":
        return None
    plain = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
    if plain & {"staticmethod", "classmethod", "property"} or not node.args.args:
        return None
    option = site.arguments.get("static_argnums")
    if option is not None:
        values = read_indices(project, option).values
        if values is None or 0 in values or any(i < 0 for i in values):
            return None
    if {"static_argnames", "concrete"} & set(site.arguments):
        return None
    return WrongWrapper(site, "linen-method")


def _applied(
    project: Project, site: Site, module: Module, subject: ast.expr
) -> WrongWrapper | None:
    kind = module_kind(project, module, subject)
    target = project.jax_version(module.source.path)
    if kind is None:
        if site.definition.modules is None and _in_haiku(project, module, site.reference):
            if _makes_parameters(project, module, subject):
                return WrongWrapper(site, "haiku")
        return None
    bound = kind.form == "method"
    if site.definition.modules == "nnx":
        since = site.definition.bound_refused_in
        if kind.framework == "nnx" and bound and since is not None and target >= since:
            return WrongWrapper(site, "nnx-bound")
        return None
    if kind.form == "class":
        return None
    match kind.framework:
        case "linen" if _in_method(project, module, site.reference):
            if not bound:
                return WrongWrapper(site, "linen-instance")
            if target < _STACKLESS:
                return WrongWrapper(site, "linen-mixed")
        case "haiku" if _in_haiku(project, module, site.reference):
            if bound and _only_computes(project, module, subject):
                return None
            if not _made_before(project, module, site, subject):
                return WrongWrapper(site, "haiku")
        case "equinox" if target >= _STACKLESS and holds_arrays(project, kind.cls):
            return WrongWrapper(site, "equinox")
    return None


def _functions_around(module: Module, node: ast.AST) -> Iterator[FunctionNode]:
    return (a for a in module.ancestors(node) if isinstance(a, FunctionNode))


def _in_method(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether code is in a method of a Flax linen module."""
    for function in _functions_around(module, node):
        cls = module.enclosing_class(function)
        if cls is not None:
            return framework_of(project.evaluator, Class(module, cls)) == "linen"
    return False


def _in_haiku(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether code certainly runs inside `hk.transform`, including initialisation."""
    initialized = find_mentions(module).attributes.get("running_init", ())
    for function in _functions_around(module, node):
        if any(function in module.ancestors(init) for init in initialized):
            return False
        cls = module.enclosing_class(function)
        if cls is not None and framework_of(project.evaluator, Class(module, cls)) == "haiku":
            return True
        if _is_transformed(project, module, function):
            return True
    return False


def _is_transformed(project: Project, module: Module, function: FunctionNode) -> bool:
    """Return whether a function is passed to `hk.transform` in its module, or decorated with it."""
    for decorator in getattr(function, "decorator_list", ()):
        if _transforms(project, module, decorator):
            return True
    return any(
        _transforms(project, module, call.func)
        and Function(module, function) in project.values(module, call.args[0])
        for call in _possible_transforms(module)
    )


@once
def _possible_transforms(module: Module) -> list[ast.Call]:
    """Return the calls that may transform a function, by the name of the callee."""
    return [
        node
        for node in module.nodes
        if isinstance(node, ast.Call) and node.args and last_name(node.func) in _TRANSFORMS
    ]


def _transforms(project: Project, module: Module, node: ast.expr) -> bool:
    if last_name(node) not in _TRANSFORMS:
        return False
    return any(n.startswith("haiku.") for n in project.qualified(module, node))


def _makes_parameters(project: Project, module: Module, subject: ast.expr) -> bool:
    """Return whether a function creates a Haiku module or a parameter in its own body."""
    values = project.values(module, subject)
    functions = [v for v in values if isinstance(v, Function)]
    if not functions or len(functions) != len(values):
        return False
    return all(_body_makes(project, f) for f in functions)


def _body_makes(project: Project, function: Function) -> bool:
    node = function.node
    stack: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    while stack:
        inner = stack.pop()
        if isinstance(inner, FunctionNode | ast.ClassDef | ast.If | ast.IfExp):
            continue
        if isinstance(inner, ast.Call):
            for value in project.values(function.module, inner.func):
                if isinstance(value, External) and value.name in _PARAMETERS:
                    return True
            if isinstance(inner.func, ast.Call) and _makes_haiku(project, function.module, inner):
                return True
        stack.extend(ast.iter_child_nodes(inner))
    return False


def _only_computes(project: Project, module: Module, subject: ast.expr) -> bool:
    """Return whether a bound method calls only functions of JAX, Python and arrays."""
    values = project.values(module, subject)
    functions = [underlying(value) for value in values]
    return bool(functions) and all(
        isinstance(function, Function) and _calls_no_module(project, function)
        for function in functions
    )


def _calls_no_module(project: Project, function: Function) -> bool:
    parameters = positional_parameters(function.node)
    own = parameters[0].arg if parameters else ""
    for call in ast.walk(function.node):
        if not isinstance(call, ast.Call):
            continue
        values = project.values(function.module, call.func)
        if values:
            if not all(isinstance(v, External) and v.name.startswith(_PLAIN) for v in values):
                return False
        elif not isinstance(call.func, ast.Attribute) or any(
            isinstance(n, ast.Name) and n.id == own for n in ast.walk(call.func)
        ):
            return False
    return True


def _makes_haiku(project: Project, module: Module, call: ast.Call) -> bool:
    """Return whether a call is like `hk.Linear(3)(x)`: it creates a module and calls it."""
    kinds = [kind_of(project.evaluator, v) for v in project.values(module, call.func)]
    return bool(kinds) and all(
        k is not None and k.framework == "haiku" and k.form == "instance" for k in kinds
    )


def _made_before(project: Project, module: Module, site: Site, subject: ast.expr) -> bool:
    """Return whether the module may have its parameters already: it is called elsewhere, too."""
    text = module.segment(subject)
    function = module.enclosing_function(site.reference)
    if function is None or isinstance(subject, ast.Call):
        return False
    around = module.enclosing_class(function) or function
    return any(
        isinstance(node, ast.Call) and module.segment(node.func) == text
        for node in ast.walk(around)
    ) or _is_given(project, module, subject)


def _is_given(project: Project, module: Module, subject: ast.expr) -> bool:
    """Return whether the wrapped value comes from outside the function and may be in use."""
    if isinstance(subject, ast.Name):
        return any(b.kind == "parameter" for b in module.reaching(subject))
    return any(
        isinstance(value, Instance) and not isinstance(value.cls, Class | External)
        for value in project.values(module, subject)
    )
