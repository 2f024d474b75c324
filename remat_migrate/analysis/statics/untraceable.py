"""Arguments that JAX rejects where it traces: functions, strings, plain objects."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..names.module import Module
from ..needs.need import Need
from ..needs.object_uses import are_trees
from ..project import Project
from ..sites.uses import Uses
from ..values.bind import default_of
from ..values.callees import Target, is_pytree
from ..values.values import (
    NOTHING,
    Bound,
    Class,
    Constant,
    External,
    Function,
    Instance,
    Partial,
    Result,
    Value,
    Values,
    Wrapped,
)
from .argument_kinds import kinds_of
from .passed_values import BoundCalls, has_attributes, passed_kind, what_is_passed


def no_jax_value(project: Project, target: Target, parameter: ast.arg, bound: BoundCalls) -> bool:
    """Whether some call passes a string, a function or a class: JAX rejects those as arguments.

    What calls pass on from their own callers is looked up there, and told by the default, and by
    what the function does with it.
    """
    default = default_of(target.function.node, parameter)
    passed = [
        origin
        for module, expr in what_is_passed(parameter, None, bound)
        for origin in kinds_of(project).origins(module, expr)
    ]
    if default is not None:
        passed.append((target.function.module, default))
    if _shows_no_jax_value(project, target, parameter, bound):
        return True
    declared = _declared(project, target, parameter)
    if declared and all(not_an_array(project, v) for v in declared):
        return True
    for module, expr in passed:
        if isinstance(expr, ast.Constant) and isinstance(expr.value, str | bytes):
            return True
        if isinstance(expr, ast.Lambda | ast.Set | ast.SetComp):
            return True
        if isinstance(expr, ast.List | ast.Tuple) and any(
            isinstance(part, ast.Constant) and isinstance(part.value, str) for part in expr.elts
        ):
            return True
        values = project.values(module, expr)
        if values and all(not_an_array(project, v) for v in values):
            return True
    return False


def _shows_no_jax_value(
    project: Project, target: Target, parameter: ast.arg, bound: BoundCalls
) -> bool:
    """Whether a parameter is a function or a string by what the function says and does.

    It is compared with one; or it is called, or has attributes that no array has, and all calls
    pass values of Python: an object may also be a module with parameters, a value of JAX.
    """
    module = target.function.module
    called = False
    match parameter.annotation:
        case ast.Name(id="str" | "bytes" | "Callable"):
            return True
    for node in ast.walk(target.function.node):
        if not isinstance(node, ast.Name) or node.id != parameter.arg:
            continue
        above = module.parent(node)
        if isinstance(above, ast.Call) and above.func is node:
            called = called or any(b.node is parameter for b in module.reaching(node))
        elif isinstance(above, ast.Compare) and _is_beside_no_array(project, module, above, node):
            if any(b.node is parameter for b in module.reaching(node)):
                return True
    is_object = called or has_attributes(target, parameter)
    return is_object and passed_kind(project, target, parameter, None, bound)[0] == "python"


def _is_beside_no_array(
    project: Project, module: Module, comparison: ast.Compare, node: ast.expr
) -> bool:
    """Whether an operand is compared with a string, or is asked whether it is some function."""
    others = [n for n in (comparison.left, *comparison.comparators) if n is not node]
    if isinstance(comparison.ops[0], ast.In | ast.NotIn):
        return False  # a key of a dictionary
    if any(isinstance(n, ast.Constant) and isinstance(n.value, str | bytes) for n in others):
        return True
    if not isinstance(comparison.ops[0], ast.Is | ast.IsNot):
        return False
    values = {v for other in others for v in project.values(module, other)}
    return any(isinstance(v, Function | External) and not_an_array(project, v) for v in values)


def not_an_array(project: Project, value: Value) -> bool:
    """Whether JAX rejects a value as an argument: a function, a string, an object."""
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


def is_called_object(
    project: Project,
    target: Target,
    parameter: ast.arg,
    needs: Iterable[Need],
    bound: BoundCalls,
    uses: Uses,
) -> bool:
    """Whether a parameter is called, or a method of it, and may be something that JAX rejects.

    It may not where only pytrees of arrays are passed for it, or nothing.
    """
    if not any(n.called and n.parameter == parameter.arg for n in needs):
        return False
    evaluator = project.evaluator
    if are_trees(evaluator, _declared(project, target, parameter)):
        return False
    passed = what_is_passed(parameter, None, bound)
    if not passed:
        in_sight = uses.calls and not uses.escapes
        return not in_sight or any(arguments.unclear for _, arguments in bound)
    if passed_kind(project, target, parameter, None, bound)[0] == "array":
        return False
    return not all(
        (origins := list(kinds_of(project).origins(*place)))
        and all(are_trees(evaluator, project.values(*origin)) for origin in origins)
        for place in passed
    )


def is_known_object(
    project: Project, target: Target, parameter: ast.arg, bound: BoundCalls
) -> bool:
    """Whether calls, the annotation or the default tell what is passed for such a parameter."""
    kind, _ = passed_kind(project, target, parameter, None, bound)
    if kind == "python" or _declared(project, target, parameter):
        return True
    default, module = default_of(target.function.node, parameter), target.function.module
    if default is None or (isinstance(default, ast.Constant) and default.value is None):
        return False
    values = project.values(module, default)
    return bool(values) and all(not_an_array(project, value) for value in values)


def _declared(project: Project, target: Target, parameter: ast.arg) -> Values:
    """Instances of the project's classes that the annotation of a parameter names."""
    if parameter.annotation is None:
        return NOTHING
    return project.evaluator.annotated(target.function.module, parameter.annotation)
