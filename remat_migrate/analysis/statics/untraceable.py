"""Arguments that JAX cannot trace: functions, strings, plain objects."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from ..names.mentions import last_name
from ..names.module import Module
from ..needs.need import Need
from ..needs.object_uses import are_trees
from ..project import Project
from ..sites.calls import Uses
from ..values.callees import is_pytree
from ..values.evaluator import class_chain, returned_expressions
from ..values.static_fields import is_declared_static
from ..values.values import (
    Bound,
    Class,
    Constant,
    Container,
    External,
    Function,
    Instance,
    Partial,
    Result,
    Value,
    Wrapped,
)
from .argument_kinds import kinds_of
from .arguments import Argument


def is_untraceable(argument: Argument) -> bool:
    """Return whether some call passes a string, a function or a class, which JAX rejects.

    The declaration, what the function does with the argument, and what callers pass on tell.
    """
    annotated = argument.annotated_instances
    return (
        _is_used_untraceably(argument)
        or (bool(annotated) and all(_is_rejected(argument.project, v) for v in annotated))
        or holds_objects(argument)
        or _is_object_by_default(argument)
    )


def is_known_object(argument: Argument) -> bool:
    """Return whether calls, the annotation or the default show what such an argument is."""
    if argument.kind == "python" or argument.annotated_instances:
        return True
    return _is_object_by_default(argument)


def _is_object_by_default(argument: Argument) -> bool:
    default = argument.default
    return default is not None and _holds_object(argument.project, argument.module, default)


def _is_used_untraceably(argument: Argument) -> bool:
    """Return whether the function shows that an argument is a function or a string.

    It compares the argument with one; or it calls it or reads attributes that no array has, and all
    calls pass Python values: an object may also be a module with parameters, which JAX can trace.
    """
    match argument.parameter.annotation:
        case ast.Name(id="str" | "bytes" | "Callable"):
            return True
    module = argument.module
    is_object = argument.has_attributes
    for use, _ in argument.uses:
        match module.parent(use):
            case ast.Call(func=func) if func is use:
                is_object = True
            case ast.Compare() as comparison:
                if _is_compared_with_untraceable(argument.project, module, comparison, use):
                    return True
    return is_object and argument.kind == "python"


def _is_compared_with_untraceable(
    project: Project, module: Module, comparison: ast.Compare, node: ast.expr
) -> bool:
    """Return whether an operand is compared with a string, or tested to be some function."""
    others = [n for n in (comparison.left, *comparison.comparators) if n is not node]
    if isinstance(comparison.ops[0], ast.In | ast.NotIn):
        return False  # a key of a dictionary
    if any(isinstance(n, ast.Constant) and isinstance(n.value, str | bytes) for n in others):
        return True
    if not isinstance(comparison.ops[0], ast.Is | ast.IsNot):
        return False
    values = {v for other in others for v in project.values(module, other)}
    return any(isinstance(v, Function | External) and _is_rejected(project, v) for v in values)


def _is_rejected(project: Project, value: Value) -> bool:
    """Return whether JAX rejects a value as an argument: a function, a string, an object."""
    match value:
        case Function() | Class() | Bound() | Partial() | Wrapped():
            return True
        case External(name):
            # A function or dtype of a library, named but not called.
            return not name.endswith((".pi", ".inf", ".nan", ".e", ".newaxis"))
        case Constant(value=str() | bytes()):
            return True
        case Result(name):
            return name in ("builtins.range", "builtins.slice", "builtins.set")
        case Instance(cls=External(name)):
            # `types.SimpleNamespace(...)`; what array libraries make may be arrays.
            return name.partition(".")[0] in ("types", "pathlib", "argparse", "collections", "enum")
        case Instance(cls=Class() as cls):
            return not is_pytree(project.evaluator, cls)
    return False


def untraceable_result(
    project: Project, function: Function, is_untraceable: Callable[[ast.arg], bool]
) -> ast.expr | None:
    """Return what a function returns that no checkpoint can: a function, a string, an object.

    `is_untraceable` tells whether a parameter is one.
    """
    module = function.module
    waiting = list(returned_expressions(function.node))
    while waiting:
        expr = waiting.pop(0)
        match expr:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
                waiting += parts
                continue
            case ast.Name():
                bound = [b.node for b in module.reaching(expr)]
                if bound and all(isinstance(n, ast.arg) and is_untraceable(n) for n in bound):
                    return expr
        values = project.values(module, expr)
        if values and all(_is_rejected(project, value) for value in values):
            return expr
    return None


def is_called_object(argument: Argument, needs: Iterable[Need], uses: Uses) -> bool:
    """Return whether the function calls an argument, or a method of it, that JAX may reject.

    JAX accepts it if the calls pass nothing but pytrees of arrays for it, or leave it out.
    """
    project = argument.project
    if not any(n.called and n.parameter == argument.name for n in needs):
        return False
    if holds_objects(argument):
        return True
    if are_trees(project.evaluator, argument.annotated_instances) or argument.is_left_out(uses):
        return False
    passed = [project.values(*origin) for origin in argument.origins]
    are_known = bool(passed) and all(are_trees(project.evaluator, values) for values in passed)
    return argument.kind != "array" and not are_known


def holds_objects(argument: Argument) -> bool:
    """Return whether some call passes a function, a string, or an object, or a tree with one."""
    return any(_holds_object(argument.project, *origin) for origin in argument.origins)


def _holds_object(project: Project, module: Module, expr: ast.expr) -> bool:
    match expr:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
            return any(_holds_object(project, module, part) for part in parts)
        case ast.Call(func=ast.Name(id="list" | "tuple" | "dict"), args=[inner]):
            origins = kinds_of(project).origins(module, inner)
            return any(_holds_object(project, *origin) for origin in origins)
    for value in project.values(module, expr):
        match value:
            case Container(module=owner, node=node) if node is not expr:
                if _holds_object(project, owner, node):
                    return True
            case Instance(cls=Class() as cls) if _has_object_field(project, cls):
                return True
            case _ if _is_rejected(project, value):
                return True
    return False


def _has_object_field(project: Project, cls: Class) -> bool:
    return any(
        isinstance(field, ast.AnnAssign)
        and any(last_name(n) in ("str", "bytes", "Callable") for n in ast.walk(field.annotation))
        and not is_declared_static(field)
        for owner in class_chain(project.evaluator, cls)
        if isinstance(owner, Class)
        for field in owner.node.body
    )
