"""Arguments that JAX cannot trace: functions, strings, plain objects."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..names.mentions import last_name
from ..names.module import Module
from ..needs.need import Need
from ..needs.object_uses import are_trees
from ..project import Project
from ..sites.calls import Uses
from ..values.callees import class_of, is_pytree
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
from .positions import position_of

_DEPTH = 6
# Types of which JAX rejects all values.
_OBJECTS = ("str", "bytes", "Callable")
# Functions that return such values.
_OBJECT_RESULTS = frozenset(
    f"builtins.{name}" for name in ("range", "slice", "set", "frozenset", "iter")
) | {"numpy.random.default_rng", "numpy.random.RandomState", "random.Random"}


def is_untraceable(argument: Argument) -> bool:
    """Return whether some call passes a string, a function or a class, which JAX rejects.

    The declaration, the default, and what callers pass on tell.
    """
    annotated, annotation = argument.annotated_instances, argument.parameter.annotation
    return (
        (annotation is not None and last_name(annotation) in _OBJECTS)
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
            return name in _OBJECT_RESULTS
        case Instance(cls=External(name)):
            # `types.SimpleNamespace(...)`; what array libraries make may be arrays.
            return name.partition(".")[0] in ("types", "pathlib", "argparse", "collections", "enum")
        case Instance(cls=Class() as cls):
            return not is_pytree(project.evaluator, cls)
    return False


def untraceable_result(project: Project, function: Function) -> ast.expr | None:
    """Return what a function returns that no checkpoint can: a function, a string, an object."""
    waiting = list(returned_expressions(function.node))
    while waiting:
        match waiting.pop(0):
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
                waiting += parts
            case expr if _holds_object(project, function.module, expr):
                return expr
    return None


def is_called_object(argument: Argument, needs: Iterable[Need], uses: Uses) -> bool:
    """Return whether the function calls an argument, or a method of it, that JAX may reject.

    JAX accepts it if the calls pass nothing but pytrees of arrays for it, or leave it out.
    """
    project = argument.project
    if not any(n.called and n.parameter == argument.name for n in needs):
        return False
    passed = [project.values(*origin) for origin in argument.origins]
    own = {v for values in passed for v in values if class_of(v) and isinstance(v, Instance)}
    if holds_objects(argument) or not all(are_trees(project.evaluator, (v,)) for v in own):
        return True
    position = position_of(argument.target, argument.name)
    differentiated = {index + argument.target.skip for index in uses.differentiated}
    if argument.kind == "array" or position in differentiated:
        return False
    if are_trees(project.evaluator, argument.annotated_instances) or argument.is_left_out(uses):
        return False
    return not passed or not all(are_trees(project.evaluator, values) for values in passed)


def holds_objects(argument: Argument) -> bool:
    """Return whether some call passes a function, a string, or an object, or a tree with one."""
    return any(_holds_object(argument.project, *located) for located in argument.passed)


def _holds_object(project: Project, module: Module, expr: ast.expr, depth: int = _DEPTH) -> bool:
    if depth <= 0:
        return False  # `x = (x, y)` in a loop
    match expr:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
            return any(_holds_object(project, module, part, depth - 1) for part in parts)
        case ast.Call(func=ast.Name(id="list" | "tuple" | "dict"), args=[inner]):
            return _holds_object(project, module, inner, depth - 1)
        case ast.Set() | ast.SetComp():
            return True
    for place in kinds_of(project).origins(module, expr):
        for value in project.values(*place):
            match value:
                case Container(module=owner, node=node) if node is not expr:
                    if _holds_object(project, owner, node, depth - 1):
                        return True
                case Instance(cls=Class() as cls) if _has_object_field(project, cls):
                    return True
                case _ if _is_rejected(project, value):
                    return True
    return False


def _has_object_field(project: Project, cls: Class) -> bool:
    return any(
        isinstance(field, ast.AnnAssign)
        and any(last_name(n) in _OBJECTS for n in ast.walk(field.annotation))
        and not is_declared_static(field)
        for owner in class_chain(project.evaluator, cls)
        if isinstance(owner, Class)
        for field in owner.node.body
    )
