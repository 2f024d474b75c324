"""Fixes for misplaced checkpoints, or the advice that takes their place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from remat_migrate.api import Fix, Project, Related, Safety
from remat_migrate.api.changes import Change, Refused
from remat_migrate.api.code import gradient_places, parameters, targets_of
from remat_migrate.api.placement import DifferentiatedPart, is_head, operations_after


def placement_fix(
    title: str, suspicion: bool, advice: str, make: Callable[[], Sequence[Change]]
) -> tuple[Fix | None, str]:
    """Return an unsafe fix, or None and the advice with the reason why there is no fix.

    A mere suspicion has no fix: other code may need the checkpoint where it is.
    """
    if suspicion:
        return None, advice
    try:
        changes = tuple(make())
    except Refused as refused:
        return None, f"{advice[:1].upper()}{advice[1:]}. No automatic fix: {refused.reason}."
    return Fix(title, Safety.UNSAFE, changes), ""


def differentiated_here(part: DifferentiatedPart) -> Related:
    """Return the location that differentiates what a checkpoint is a part of."""
    derivative = part.derivative
    return Related(*derivative.module.location(derivative.node), "differentiated here")


def stages_fix(project: Project, part: DifferentiatedPart, advice: str) -> tuple[Fix | None, str]:
    """Return the fix that moves a checkpoint from a whole function to its stages."""
    from remat_migrate.api.rewrites import move_to_stages

    found = part.found
    if found.part == "bulk" and is_head(operations_after(project, found)):
        # Measured: with a large head, layer by layer takes up to 4% more than the whole stack.
        return None, f"{advice}; a large head follows the stack, so measure both"
    functions = {t.function for t in targets_of(project.evaluator, found.applied.target)}
    if len(functions) != 1:
        return None, advice
    [function] = functions
    positions = _differentiated_positions(part) if not found.calls else ()
    names = [parameter.arg for parameter in parameters(function.node)]
    differentiated = [names[position] for position in positions if 0 <= position < len(names)]
    return placement_fix(
        "checkpoint every stage but the last",
        part.certainty == "suspected",
        advice,
        lambda: move_to_stages(project, part.site, function, differentiated),
    )


def _differentiated_positions(part: DifferentiatedPart) -> list[int]:
    """Return the positions of the parameters that are differentiated."""
    use = part.derivative
    argnums = use.argument("argnums", 1)
    if argnums is None:
        return [0]
    return gradient_places(ast.Call(use.node, [], [ast.keyword("argnums", argnums)]))
