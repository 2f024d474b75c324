"""Arguments that are data of the computation: arrays or trees of arrays.

Where code that uses an argument cannot be seen, this tells data from options.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from ..names.module import Module
from ..needs.need import Need
from ..project import Project
from ..sites.calls import Uses
from .argument_kinds import kinds_of
from .arguments import Argument, is_array_use


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


def is_computed_with(argument: Argument) -> bool:
    """Return whether the function uses the argument, or an item of it, as data."""
    return any(_is_data_use(argument.project, argument.module, use) for use, _ in argument.uses)


def _is_data_use(project: Project, module: Module, use: ast.expr) -> bool:
    while isinstance(above := module.parent(use), ast.Subscript) and above.value is use:
        use = above
    return is_array_use(project, module, use)


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
