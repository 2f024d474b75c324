"""What a parameter may hold: `self`, defaults, annotated classes, Apis passed for it."""

from __future__ import annotations

import ast
from dataclasses import replace

from ..names.module import Module
from ..names.scopes import FunctionNode
from .bind import default_of, first_parameter
from .evaluation import Evaluation
from .values import NOTHING, Class, External, Instance, Parameter, Value, Values


def parameter_values(
    ev: Evaluation, module: Module, function: FunctionNode, node: ast.arg
) -> Values:
    """Return what is known about the value of a parameter."""
    found: set[Value] = {Parameter(module, function, node.arg)}
    found |= ev.passed.get((function, node.arg), set())
    cls = module.enclosing_class(function)
    first = first_parameter(function)
    if cls is not None and node is first and not isinstance(function, ast.Lambda):
        names = {d.id for d in function.decorator_list if isinstance(d, ast.Name)}
        if "classmethod" in names or function.name in ("__new__", "__init_subclass__"):
            return frozenset((Class(module, cls, exact=False),))
        if "staticmethod" not in names:
            return frozenset((Instance(Class(module, cls, exact=False)),))
    if node.annotation is not None:
        found |= annotated_values(ev, module, node.annotation)
    default = default_of(function, node)
    if default is not None:
        found |= ev.values(module, default)
    return frozenset(found)


def annotated_values(ev: Evaluation, module: Module, annotation: ast.expr) -> Values:
    """Return instances of the project's classes, or of layers, that an annotation names."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        name = annotation.value
        return _instances(ev.member(module, name)) if name.isidentifier() else NOTHING
    if isinstance(annotation, ast.BinOp):
        return annotated_values(ev, module, annotation.left) | annotated_values(
            ev, module, annotation.right
        )
    if isinstance(annotation, ast.Subscript):
        base = ev.values(module, annotation.value)
        if any(isinstance(v, External) and v.name.endswith("Optional") for v in base):
            return annotated_values(ev, module, annotation.slice)
        return NOTHING
    return _instances(ev.values(module, annotation))


def _instances(values: Values) -> Values:
    """Return instances of some classes, or of their subclasses."""
    layers = {v for v in values if isinstance(v, External) and v.name.startswith("equinox.nn.")}
    classes = {replace(v, exact=False) for v in values if isinstance(v, Class)}
    return frozenset(map(Instance, layers | classes))
