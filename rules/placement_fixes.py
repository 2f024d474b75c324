"""Fixes of misplaced checkpoints: the changes, or why there are none."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from remat_migrate.analysis import Project
from remat_migrate.analysis.names.scopes import parameters
from remat_migrate.analysis.placement.whole_and_last import DifferentiatedPart
from remat_migrate.analysis.values.callees import targets_of
from remat_migrate.analysis.values.declarations import gradient_places
from remat_migrate.codemod.changes import Change
from remat_migrate.rewrite import Refused
from remat_migrate.rule import Fix, Related, Safety

# In code that may compute logits over a vocabulary, larger than all else.
HEAD_WORDS = re.compile(
    r"softmax|logsumexp|cross_?entropy|xent|vocab|logit|one_hot|embed|head|decode|token|unembed",
    re.IGNORECASE,
)


def placement_fix(
    title: str, suspicion: bool, advice: str, make: Callable[[], Sequence[Change]]
) -> tuple[Fix | None, str]:
    """An unsafe fix, or None with the reason: what stands in the way, and `advice`.

    Where the finding is a suspicion nothing is changed: code of the project may need the checkpoint
    where it is.
    """
    if suspicion:
        return None, advice
    try:
        found = tuple(make())
    except Refused as refused:
        return None, f"{advice}; not done here: {refused.reason}"
    return Fix(title, Safety.UNSAFE, found), ""


def differentiated_here(part: DifferentiatedPart) -> Related:
    """The place that differentiates what a checkpoint is a part of."""
    derivative = part.derivative
    span = derivative.module.span(derivative.node)
    return Related(derivative.module.source, span, "differentiated here")


def stages_fix(project: Project, part: DifferentiatedPart, advice: str) -> tuple[Fix | None, str]:
    """The fix that moves a checkpoint from a whole function to its stages."""
    from remat_migrate.rewrite.placement import move_to_stages

    found = part.found
    if found.part == "bulk" and _has_head(part):
        # Measured: with a large head, layer by layer takes up to 4% more than the whole stack.
        return None, f"{advice}; with a large head beside the stack, measure both"
    functions = {t.function for t in targets_of(project.evaluator, found.applied.target)}
    if len(functions) != 1:
        return None, advice
    [function] = functions
    differentiated = _differentiated(part) if not found.calls else ()
    names = [parameter.arg for parameter in parameters(function.node)]
    return placement_fix(
        "put it on the stages of the function but the last",
        part.sureness == "suspected",
        advice,
        lambda: move_to_stages(
            project,
            part.site,
            function,
            [names[place] for place in differentiated if 0 <= place < len(names)],
        ),
    )


def _has_head(part: DifferentiatedPart) -> bool:
    """Whether a vocabulary may stand beside a stack of layers."""
    for module, call in part.found.calls[-1:]:
        around = module.enclosing_function(call)
        cls = module.enclosing_class(around) if around is not None else None
        if HEAD_WORDS.search(module.segment(cls or around or call)):
            return True
    return False


def _differentiated(part: DifferentiatedPart) -> list[int]:
    """The parameters that the gradient is taken of, by position."""
    use = part.derivative.use
    argnums = use.argument("argnums", 1)
    if argnums is None:
        return [0]
    return gradient_places(ast.Call(use.node, [], [ast.keyword("argnums", argnums)]))
