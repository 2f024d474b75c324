"""Modules of Flax, Haiku, and Equinox: whether an expression is one, and whether a class or an
instance.

Each framework checkpoints them in its own way:

- Flax linen wraps the class, or a function whose first argument is a module:
  `nn.remat(Block)(...)`.
- Flax nnx wraps a function or an unbound method: `nnx.remat(Block.__call__)`.
- Haiku wraps the instance, or any function, inside the transformed function: `hk.remat(block)`.
- Equinox wraps the instance: `eqx.filter_checkpoint(block)`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from ...libraries.framework_layers import LAYERS, PACKAGES, WITH_ARRAYS, Framework
from ..names.module import Module, Place
from ..project import Project
from ..values.callees import underlying
from ..values.classes import class_annotations, self_assignments
from ..values.containers import elements
from ..values.evaluator import Evaluator, class_chain
from ..values.haiku_transforms import APPLY
from ..values.values import (
    Applied,
    Bound,
    Class,
    Container,
    External,
    Function,
    Instance,
    Value,
    Wrapped,
)

Form = Literal["class", "instance", "method"]

_ARRAYS = ("jax.Array", "jaxtyping.Array", "jax.numpy.ndarray", "jaxtyping.PRNGKeyArray")
# Methods of a Flax module that are functions of its variables.
_OF_VARIABLES = APPLY | {"bind", "tabulate", "clone"}


@dataclass(frozen=True, slots=True)
class ModuleKind:
    """What an expression is to a framework.

    Attributes:
        framework: the framework of the module.
        form: "class", "instance", or "method" (bound to an instance).
        cls: the class.
    """

    framework: Framework
    form: Form
    cls: Value


def framework_of(evaluator: Evaluator, cls: Value | None) -> Framework | None:
    """Return the framework that a class is a module of."""
    if isinstance(cls, External):
        return _framework_of_name(cls.name)
    if isinstance(cls, Class):
        for base in class_chain(evaluator, cls):
            if isinstance(base, External) and (found := _framework_of_name(base.name)) is not None:
                return found
    return None


def _framework_of_name(name: str) -> Framework | None:
    package, _, last = name.rpartition(".")
    for framework, packages in PACKAGES.items():
        inside = any(package == p or package.startswith(f"{p}.") for p in packages)
        if inside and last in LAYERS[framework]:
            return framework
    return None


def kind_of(evaluator: Evaluator, value: Value) -> ModuleKind | None:
    """Return what a value is to a framework; None if it is not a module."""
    match value:
        case Class() | External():
            framework = framework_of(evaluator, value)
            return ModuleKind(framework, "class", value) if framework else None
        case Applied(target=inner) | Wrapped(func=inner) if inner is not None:
            found = kind_of(evaluator, inner)
            return found if found is not None and found.form == "class" else None
        case Instance(cls=cls):
            inner = underlying(cls)
            framework = framework_of(evaluator, inner)
            if framework is None or inner is None:
                return None
            return ModuleKind(framework, "instance", inner)
        case Bound(func=func, receiver=Instance() as receiver):
            found = kind_of(evaluator, receiver)
            if found is None or not _is_method(func):
                return None
            return ModuleKind(found.framework, "method", found.cls)
    return None


def _is_method(func: Value) -> bool:
    if isinstance(func, External):
        return func.name.endswith(".__call__")
    inner = underlying(func)
    return isinstance(inner, Function) and getattr(inner.node, "name", "") not in _OF_VARIABLES


def module_kind(project: Project, module: Module, node: ast.expr) -> ModuleKind | None:
    """Return what an expression is to a framework, if all its values agree."""
    kinds = [kind_of(project.evaluator, v) for v in project.values(module, node)]
    first = kinds[0] if kinds else None
    if first is None:
        return None
    same = all(
        k is not None and (k.framework, k.form) == (first.framework, first.form) for k in kinds
    )
    return first if same else None


def makers(
    project: Project, module: Module, node: ast.expr, depth: int = 6
) -> list[tuple[Module, ast.Call]]:
    """Return the calls that create the instance that an expression is; empty if one is unknown.

    Annotations do not count: they may name a class where the class itself is meant.
    """
    parts: list[Place] | None = None
    if depth <= 0:
        return []
    match node:
        case ast.Call():
            kinds = module_kind(project, module, node), module_kind(project, module, node.func)
            match kinds:
                case ModuleKind(form="instance"), ModuleKind(form="class"):
                    return [(module, node)]
            return []
        case ast.Name():
            parts = _bound_to(project, module, node)
        case ast.Attribute(value=ast.Name()):
            parts = _assigned(project, module, node)
        case ast.Subscript(value=holder) if not isinstance(node.slice, ast.Slice):
            parts = _elements(project, module, holder)
        case ast.IfExp(body=body, orelse=orelse):
            parts = [(module, body), (module, orelse)]
        case ast.NamedExpr(value=value):
            parts = [(module, value)]
    found = [makers(project, owner, part, depth - 1) for owner, part in parts or ()]
    return [maker for one in found for maker in one] if all(found) else []


def _bound_to(project: Project, module: Module, node: ast.Name) -> list[Place] | None:
    found: list[Place] = []
    for binding in module.reaching(node):
        if binding.kind not in ("assign", "element") or binding.value is None or binding.path:
            return None
        if binding.kind == "assign":
            found.append((module, binding.value))
        else:
            found += _elements(project, module, binding.value) or []
    return found


def _elements(project: Project, module: Module, node: ast.expr) -> list[Place] | None:
    """Return the elements of a container, or None if there may be others."""
    values = project.values(module, node)
    if not values or not all(isinstance(v, Container) for v in values):
        return None
    return [part for v in values if isinstance(v, Container) for part in elements(v)]


def _assigned(project: Project, module: Module, node: ast.Attribute) -> list[Place] | None:
    """Yield what the methods of a class assign to an attribute of `self` that is not a field."""
    found: list[Place] = []
    for value in project.values(module, node.value):
        if not isinstance(value, Instance) or not isinstance(value.cls, Class):
            return None
        for owner in class_chain(project.evaluator, value.cls):
            if isinstance(owner, Class):
                if node.attr in class_annotations(owner.node):
                    return None
                expressions = self_assignments(owner.node).get(node.attr, ())
                found += ((owner.module, expression) for expression in expressions)
    return found


def holds_arrays(project: Project, cls: Value, depth: int = 4) -> bool:
    """Return whether instances of an Equinox class certainly hold arrays, and so have no hash."""
    if isinstance(cls, External):
        return cls.name.rpartition(".")[2] in WITH_ARRAYS
    if not isinstance(cls, Class) or depth <= 0:
        return False
    for owner in class_chain(project.evaluator, cls):
        if not isinstance(owner, Class):
            continue
        for statement in owner.node.body:
            # A field with a default may be static.
            if isinstance(statement, ast.AnnAssign) and statement.value is None:
                if _is_of_arrays(project, owner.module, statement.annotation, depth):
                    return True
    return False


def _is_of_arrays(project: Project, module: Module, annotation: ast.expr, depth: int) -> bool:
    if isinstance(annotation, ast.Subscript):
        names = project.qualified(module, annotation.value)
        if any(name.startswith("jaxtyping.") for name in names):
            return True
        if names <= {"builtins.list", "builtins.tuple", "typing.List", "typing.Tuple"} and names:
            first = annotation.slice
            if isinstance(first, ast.Tuple):
                return any(_is_of_arrays(project, module, e, depth) for e in first.elts)
            return _is_of_arrays(project, module, first, depth)
        return False
    for value in project.values(module, annotation):
        if isinstance(value, External) and value.name in _ARRAYS:
            return True
        if framework_of(project.evaluator, value) == "equinox":
            return holds_arrays(project, value, depth - 1)
    return False
