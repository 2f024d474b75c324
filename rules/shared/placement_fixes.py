"""Fixes for misplaced checkpoints, or the advice that takes their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remat_migrate.api import Fix, Project, Related, Safety
from remat_migrate.api.changes import Change, Refused
from remat_migrate.api.code import targets_of
from remat_migrate.api.placement import DifferentiatedPart, is_head, operations_after


def placement_fix(
    title: str, suspicion: bool, advice: str, make: Callable[[], Sequence[Change]]
) -> Fix:
    """Return an unsafe fix, or the advice with the reason why there is none.

    A mere suspicion has no fix: other code may need the checkpoint where it is.
    """
    if suspicion:
        return Fix.manual(advice)
    try:
        return Fix(title, Safety.UNSAFE, tuple(make()))
    except Refused as refused:
        return Fix.manual(f"{advice}; no automatic fix: {refused.reason}")


def differentiated_here(part: DifferentiatedPart) -> Related:
    """Return the location that differentiates what a checkpoint is a part of."""
    derivative = part.derivative
    return Related(*derivative.module.location(derivative.node), "differentiated here")


def stages_fix(project: Project, part: DifferentiatedPart, advice: str) -> Fix:
    """Return the fix that moves a checkpoint from a whole function to its stages."""
    from remat_migrate.api.rewrites import move_to_stages

    found = part.found
    if found.part == "bulk" and is_head(operations_after(project, found)):
        # Measured: with a large head, layer by layer takes up to 4% more than the whole stack.
        return Fix.manual(f"{advice}; a large head follows the stack, so measure both")
    functions = {t.function for t in targets_of(project.evaluator, found.applied.target)}
    if len(functions) != 1:
        return Fix.manual(advice)
    [function] = functions
    return placement_fix(
        "checkpoint every stage but the last",
        part.certainty == "suspected",
        advice,
        lambda: move_to_stages(project, part.site, function),
    )
