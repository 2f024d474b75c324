"""Checkpoints one call.

    x = block(p, x)         ->  x = jax.checkpoint(block)(p, x)
    x = block(p, x, train)  ->  x = jax.checkpoint(lambda: block(p, x, train))()

What must be concrete, or may not be an array, is closed over. If it is an array after all, its
gradient still flows.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial

from ...analysis import Module, Project
from ...analysis.names.module import parameters
from ...analysis.sites.references import reference_to
from ...analysis.statics.arguments import Argument, argument_kind, is_computed_with, project_needs
from ...analysis.values.bind import bind_call
from ...analysis.values.evaluator import Target, targets_of
from ...codemod.changes import Change, Code, Replace
from ..checkpoint_code import CheckpointCode
from ..refusal import Refused, check_own
from .callees import (
    EQUINOX,
    JAX,
    LINEN,
    NNX,
    check_compile_time,
    is_visible,
    library_apis,
    may_lack_hash,
    sole_api,
)
from .expressions import wrap_expression
from .hazards import check_hazards


def wrap_call(
    project: Project,
    module: Module,
    call: ast.Call,
    options: Sequence[str] = (),
    *,
    checkpoint: str = JAX,
) -> list[Change]:
    """Return the changes that checkpoint one call.

    Args:
        project: the project.
        module: the module of the call.
        call: the call.
        options: options of the checkpoint, as `name=value`.
        checkpoint: the Api of JAX to use, by qualified name.

    Raises:
        Refused: a checkpoint changes what the call does, or may do so.
    """
    check_own(module, call, "the call")
    values = project.values(module, call.func)
    api = sole_api(library_apis(project, module, call, values), module, call)
    as_expression = partial(wrap_expression, project, module, call, options, checkpoint=checkpoint)
    if api in (LINEN, NNX):
        return as_expression()
    if not values or not all(is_visible(project, value) for value in values):
        reason = f"`{ast.unparse(call.func)}` is an unknown function, and may have side effects"
        raise Refused(reason, module, call)
    targets = [t for v in values for t in targets_of(project.evaluator, v)]
    for target in targets:
        check_hazards(project, target.function)
        check_compile_time(project, target)
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    traced = [_is_array(project, module, call, expr, targets) for expr in given]
    if not any(traced):
        raise Refused("no argument is known to be an array", module, call)
    # `eqx.filter_checkpoint` selects the arrays itself.
    if may_lack_hash(project, values) or not (all(traced) or api == EQUINOX):
        return as_expression()
    reference = reference_to(module, project, checkpoint if api == JAX else api, call)
    code = CheckpointCode(reference.text, tuple(options)).around("{f}")
    return [Replace(module, call.func, Code.of(code, f=call.func)), *reference.changes]


def _is_array(
    project: Project,
    module: Module,
    call: ast.Call,
    expr: ast.expr,
    targets: Sequence[Target],
) -> bool:
    """Return whether an argument of a call is an array or a tree of arrays.

    The argument itself shows that, or else what all functions that may be called do with it.

    Raises:
        Refused: it is an array that must be concrete.
    """
    kind = argument_kind(project, module, expr.value if isinstance(expr, ast.Starred) else expr)
    if kind == "python" or (kind == "unknown" and not targets):
        return False
    for target in targets:
        bound = bind_call(target.function.node, call.args, call.keywords, target.skip)
        parameter = next(
            (p for p in parameters(target.function.node) if bound.by_name.get(p.arg) is expr), None
        )
        if parameter is None:
            if kind == "unknown":
                return False
            continue
        needs = project_needs(project).of(target.function, target.owner)
        if any(need.certain and need.parameter == parameter.arg for need in needs):
            if kind == "array":
                reason = f"`{parameter.arg}` must be concrete, and is an array here"
                raise Refused(reason, module, expr)
            return False
        argument = Argument(project, target, parameter)
        if argument.annotated_kind == "python":
            return False
        if kind == "unknown" and not is_computed_with(argument):
            return False
    return True
