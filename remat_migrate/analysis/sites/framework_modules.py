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
from ..names.module import Module, last_name, parameters
from ..project import Project
from ..values.evaluator import Evaluator, annotated_values, class_chain, project_bases
from ..values.values import (
    APPLY,
    Applied,
    Bound,
    Class,
    External,
    Function,
    Instance,
    Parameter,
    Value,
    Wrapped,
    alternatives,
    order,
    underlying,
)
from .calls import is_field

Form = Literal["class", "instance", "method"]

_ARRAYS = ("jax.Array", "jaxtyping.Array", "jax.numpy.ndarray", "jaxtyping.PRNGKeyArray")
# An annotation with one of these may be of something else.
_OTHER_THAN_ARRAYS = ("Optional", "Union", "Callable", "Type", "type", "Literal", "Dict", "dict")
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
        case Parameter(module=module, function=function, name=name):
            [declared] = (p.annotation for p in parameters(function) if p.arg == name)
            if isinstance(declared, ast.Name | ast.Attribute | ast.Constant):  # of one class
                instances = annotated_values(evaluator, module, declared)
                return next((kind_of(evaluator, one) for one in instances), None)
    return None


def _is_method(func: Value) -> bool:
    if isinstance(func, External):
        return func.name.endswith(".__call__")
    inner = underlying(func)
    return isinstance(inner, Function) and getattr(inner.node, "name", "") not in _OF_VARIABLES


def module_kinds(project: Project, module: Module, node: ast.expr) -> list[ModuleKind]:
    """Return what the values of an expression are to a framework; nothing if they disagree."""
    values = sorted(project.values(module, node), key=order)
    kinds = [kind_of(project.evaluator, value) for value in values]
    known = [kind for kind in kinds if kind is not None]
    agree = len(known) == len(kinds) and len({(k.framework, k.form) for k in known}) == 1
    return known if agree else []


def module_kind(project: Project, module: Module, node: ast.expr) -> ModuleKind | None:
    """Return what an expression is to a framework, if all its values agree."""
    return next(iter(module_kinds(project, module, node)), None)


def is_made(project: Project, module: Module, node: ast.expr, depth: int = 6) -> bool:
    """Return whether the code shows where an instance is created.

    An annotation may name a class where the class itself is meant.
    """
    if depth <= 0:
        return False
    match node:
        case ast.Name():
            return all(
                binding.kind in ("assign", "element")
                and binding.value is not None
                and is_made(project, module, binding.value, depth - 1)
                for binding in module.reaching(node)
            )
        case ast.Subscript(value=holder):
            return is_made(project, module, holder, depth - 1)
    if is_field(project, module, node):
        return False
    return all(is_made(project, module, part, depth - 1) for part in alternatives(node))


def holds_arrays(project: Project, cls: Value, depth: int = 4) -> bool:
    """Return whether instances of an Equinox class surely hold arrays, which cannot be hashed."""
    if isinstance(cls, External):
        return cls.name.rpartition(".")[2] in WITH_ARRAYS
    if not isinstance(cls, Class) or depth <= 0:
        return False
    return any(
        # A field with a default may be static.
        isinstance(statement, ast.AnnAssign)
        and statement.value is None
        and _is_of_arrays(project, owner.module, statement.annotation, depth)
        for owner in project_bases(project.evaluator, cls)
        for statement in owner.node.body
    )


def _is_of_arrays(project: Project, module: Module, annotation: ast.expr, depth: int) -> bool:
    parts = list(ast.walk(annotation))
    if any(isinstance(p, ast.BinOp) or last_name(p) in _OTHER_THAN_ARRAYS for p in parts):
        return False
    return any(
        (isinstance(value, External) and value.name in _ARRAYS)
        or (
            framework_of(project.evaluator, value) == "equinox"
            and holds_arrays(project, value, depth - 1)
        )
        for part in parts
        if isinstance(part, ast.expr)
        for value in project.values(module, part)
    )
