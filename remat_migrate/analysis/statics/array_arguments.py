"""Arguments that are arrays, or trees of them, as far as the code shows.

Where nobody can see what becomes of an argument, this tells the data of a computation from its
options.
"""

from __future__ import annotations

import ast

from ..names.module import Module
from ..names.scopes import parameters
from ..needs.need import Need
from ..project import Project
from ..sites.uses import Uses
from ..values.bind import bind_call, positional_parameters
from ..values.callees import Target, full_arguments, receiver_of, skipped, underlying
from ..values.classes import is_decorated
from ..values.values import External, Function, Instance, Value, Wrapped
from .argument_kinds import kinds_of
from .passed_values import BoundCalls, flag_like, is_array_use, passed_kind, uses_of, what_is_passed
from .project_needs import needs_with_overrides

_DEPTH = 3
_LAYERS = ("flax.linen.", "flax.nnx.", "haiku.", "equinox.nn.")


def is_self(target: Target, positional: list[ast.arg], parameter: ast.arg) -> bool:
    """`self` of a method, and the module that a lifted function takes first."""
    if target.owner is None or not positional or positional[0] is not parameter:
        return False
    return not is_decorated(target.function.node, "staticmethod")


def is_first(project: Project, target: Target, parameter: ast.arg) -> bool:
    """Whether a parameter is the function's first and its result is computed from it."""
    positional = positional_parameters(target.function.node)
    if not positional:
        return False
    first = positional[1:2] if is_self(target, positional, positional[0]) else positional[:1]
    if parameter not in first:
        return False
    return any(
        d.parameter == parameter.arg
        for d in needs_with_overrides(project).result(target.function, target.owner)
    )


def is_data(project: Project, target: Target, parameter: ast.arg, bound: BoundCalls) -> bool:
    """Whether a parameter takes data: it is computed with, or is what the result is made of."""
    if is_first(project, target, parameter) or _is_computed_with(project, target, parameter):
        return True
    return any(
        _is_item(expr)
        or kinds_of(project).of(module, expr) == "array"
        or (isinstance(expr, ast.Name) and _is_data_name(project, module, expr))
        for passed in what_is_passed(parameter, None, bound)
        for module, expr in kinds_of(project).origins(*passed)
    )


def _is_data_name(project: Project, module: Module, name: ast.Name) -> bool:
    """Whether a function uses a name as an array elsewhere."""
    function = module.enclosing_function(name)
    bindings = module.reaching(name)
    return function is not None and any(
        _is_data_use(project, module, use, _DEPTH)
        for use in ast.walk(function)
        if isinstance(use, ast.Name) and use.id == name.id and module.reaching(use) & bindings
    )


def _is_item(expr: ast.expr) -> bool:
    """`batch["x"]` and `batch[0]`: options come from attributes and from names."""
    return isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Constant)


def _is_computed_with(
    project: Project, target: Target, parameter: ast.arg, depth: int = _DEPTH
) -> bool:
    """Whether it, or an item of it, is used as an array, here or where it is passed on."""
    module = target.function.module
    return any(_is_data_use(project, module, use, depth) for use, _ in uses_of(target, parameter))


def _is_data_use(project: Project, module: Module, use: ast.expr, depth: int) -> bool:
    while isinstance(above := module.parent(use), ast.Subscript) and above.value is use:
        use = above
    if is_array_use(project, module, use):
        return True
    call = module.parent(use)
    if isinstance(call, ast.keyword):
        call = module.parent(call)
    if depth <= 0 or not isinstance(call, ast.Call) or call.func is use:
        return False
    return any(
        _takes_data(project, value, call, use, depth - 1)
        for value in project.values(module, call.func)
    )


def _takes_data(
    project: Project, value: Value, call: ast.Call, argument: ast.expr, depth: int
) -> bool:
    """Whether what is called takes one of its arguments as data."""
    match value:
        case Wrapped(how="jax.vmap", node=ast.Call(args=[_], keywords=[])):
            return True
    match underlying(value):
        case Instance(cls=External(name)) if name.startswith(_LAYERS):
            return argument in call.args[:1]
        case Function() as function:
            args, keywords = full_arguments(value, call)
            passed = bind_call(function.node, args, keywords, skipped(value)).by_name
            inner = Target(function, receiver_of(value))
            return any(
                passed.get(parameter.arg) is argument
                and _is_computed_with(project, inner, parameter, depth)
                for parameter in parameters(function.node)
            )
    return False


def is_strange_to_arrays(need: Need) -> bool:
    """Whether what may need a value is not a place that takes arrays and flags alike.

    What is called or goes into code that cannot be seen is another question.
    """
    elsewhere = need.beside or need.unseen or need.called
    return not elsewhere and not need.reason.startswith("an argument of")


def may_be_flag(
    project: Project,
    target: Target,
    parameter: ast.arg,
    index: int | str | None,
    bound: BoundCalls,
    uses: Uses,
) -> bool:
    """Whether a parameter that only *may* be needed may be a Python value, as well as an array.

    Nothing is known of what is passed, and the function does not compute with it.
    """
    function, annotation = target.function, parameter.annotation
    if annotation is not None and project.evaluator.annotated(function.module, annotation):
        return False  # an object
    passed = what_is_passed(parameter, index, bound)
    unclear = any(arguments.unclear for _, arguments in bound)
    if uses.calls and not uses.escapes and not passed and not unclear:
        return False  # every call leaves it to its default
    kinds = {kinds_of(project).of(module, expr) for module, expr in passed}
    kinds.add(kinds_of(project).parameter(function.module, function.node, parameter))
    return "array" not in kinds and not is_data(project, target, parameter, bound)


def unread_reason(
    project: Project,
    target: Target,
    parameter: ast.arg,
    bound: BoundCalls,
    uses: Uses,
    others: bool,
) -> tuple[str, bool]:
    """Why a parameter must not be traced of which no need is seen, and whether that is sure.

    `others`: the function is a method that others may override.
    """
    a = target.function.node.args
    if parameter in (a.vararg, a.kwarg):
        return "", True
    if is_self(target, positional_parameters(target.function.node), parameter):
        return "", True
    kind, _ = passed_kind(project, target, parameter, None, bound)
    if others and kind != "array" and flag_like(project, target, parameter, None, bound):
        return "a subclass that overrides the method may need it", True
    results = needs_with_overrides(project).result(target.function, target.owner)
    if kind != "unknown" or any(d.parameter == parameter.arg for d in results):
        return "", True
    if may_be_flag(project, target, parameter, None, bound, uses):
        return "nothing is computed from it, so it may be a string", False
    return "", True
