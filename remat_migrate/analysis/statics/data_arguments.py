"""Arguments that are data of the computation: arrays or trees of arrays.

Where code that uses an argument cannot be seen, this tells data from options.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from ...libraries.library_arguments import LAYER_MODULES
from ..names.module import Module
from ..names.scopes import parameters
from ..needs.need import Need
from ..project import Project
from ..sites.calls import Uses
from ..values.bind import bind_call
from ..values.callees import Target, full_arguments, receiver_of, skipped, underlying
from ..values.values import External, Function, Instance, Value, Wrapped
from .argument_kinds import kinds_of
from .arguments import Argument, is_array_use

_DEPTH = 3


def is_data(argument: Argument) -> bool:
    """Return whether an argument is data: the function computes with it, or the calls show it."""
    project = argument.project
    if argument.is_primary or is_computed_with(argument):
        return True
    return any(
        _is_item(expr) or kinds_of(project).of(module, expr) == "array"
        for module, expr in replace(argument, index=None).origins
    )


def _is_item(expr: ast.expr) -> bool:
    """Return whether an expression is like `batch["x"]`; options are attributes and names."""
    return isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Constant)


def is_computed_with(argument: Argument, depth: int = _DEPTH) -> bool:
    """Return whether the function, or one that it calls, uses the argument or an item as data."""
    module, uses = argument.module, {use for use, _ in argument.uses}
    # `up, down = params`
    is_unpacked = any(isinstance(module.parent(use), ast.Assign) for use in uses)
    items = {
        node
        for node in (ast.walk(argument.target.function.node) if is_unpacked else ())
        if isinstance(node, ast.Name)
        and any(binding.path and binding.value in uses for binding in module.reaching(node))
    }
    return any(_is_data_use(argument.project, module, use, depth) for use in uses | items)


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
    project: Project, value: Value, call: ast.Call, passed: ast.expr, depth: int
) -> bool:
    """Return whether a callee takes what a call passes as data."""
    match value:
        case Wrapped(how="jax.vmap", node=ast.Call(args=[_], keywords=[])):
            return True
    match underlying(value):
        case Instance(cls=External(name)) if name.startswith(LAYER_MODULES):
            return passed in call.args[:1]
        case Function() as function:
            args, keywords = full_arguments(value, call)
            by_name = bind_call(function.node, args, keywords, skipped(value)).by_name
            target = Target(function, receiver_of(value))
            return any(
                by_name.get(parameter.arg) is passed
                and is_computed_with(Argument(project, target, parameter), depth)
                for parameter in parameters(function.node)
            )
    return False


def suggests_option(need: Need) -> bool:
    """Return whether a need is in a place that takes Python values rather than arrays.

    Calls of the value and calls of code that cannot be seen are judged elsewhere.
    """
    elsewhere = need.operands or need.opaque or need.called
    return not elsewhere and not need.reason.startswith("an argument of")


def may_be_option(argument: Argument, uses: Uses) -> bool:
    """Return whether a parameter that only *may* be needed can be an option as well as an array.

    It can if nothing is known of what is passed, and the function does not compute with it.
    """
    if argument.annotated_instances or argument.is_left_out(uses):
        return False
    kinds = kinds_of(argument.project)
    function = argument.target.function
    declared = kinds.parameter(function.module, function.node, argument.parameter)
    return "array" not in (declared, argument.kind) and not is_data(argument)


def may_be_ignored_option(argument: Argument, uses: Uses) -> bool:
    """Return whether an argument that the function ignores may be a string, which JAX rejects."""
    if argument.kind != "unknown" or argument.determines_result:
        return False
    return may_be_option(argument, uses)
