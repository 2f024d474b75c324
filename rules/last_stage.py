"""RMT302: the last stage of a differentiated function is checkpointed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from remat_migrate.api import Example, Finding, Module, Project, Rule, Safety, sites_in
from remat_migrate.api.placement import DifferentiatedPart, may_be_head, parts_in, wraps_policy

from .shared.placement_fixes import differentiated_here, placement_fix

_STEP = """\
import jax
import jax.numpy as jnp


def layer(x, w):
    return jnp.tanh(x @ w)


def step(weights, x):
    %s

    def loss(weights):
        return jnp.mean(%s)

    return jax.grad(loss)(weights)
"""


class LastStage(Rule):
    """## What it does
    Checks for a checkpoint on the last stage of a differentiated function, whose result is
    returned, alone or with metrics, or is only reduced to a loss. A squared error of the model's
    outputs is such a stage. Ignores stages that may be large heads: a softmax, `logsumexp`, or
    cross entropy of a product; and stages without a product that may keep several arrays as large
    as the model's outputs, such as a cross entropy of logits.

    ## Why is this bad?
    The backward pass starts with the last stage. The residuals that the checkpoint drops are
    recomputed immediately, while all others are still kept. Peak memory is the same, and the stage
    may be computed twice.

    ## Fix
    Removes the checkpoint. `remat-migrate measure` shows whether the compiled program agrees.
    """

    code, name = "RMT302", "last-stage"
    fix_safety = Safety.UNSAFE
    severity = "note"
    wrong = [
        Example(
            _STEP % ("last = jax.checkpoint(layer)", "last(layer(x, weights[0]), weights[1])"),
            _STEP % ("last = layer", "last(layer(x, weights[0]), weights[1])"),
        ),
    ]
    right = [
        # The first of two stages.
        _STEP % ("first = jax.checkpoint(layer)", "layer(first(x, weights[0]), weights[1])"),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each checkpoint on the last stage of what is differentiated."""
        if not sites_in(project, module):
            return
        for part in parts_in(project, module):
            if part.found.part == "last" and not wraps_policy(part.site):
                if not may_be_head(project, part.found):
                    yield self._finding(project, part)

    def _finding(self, project: Project, part: DifferentiatedPart) -> Finding:
        from remat_migrate.api.rewrites import remove_site

        site, derivative = part.site, part.derivative
        fix = placement_fix(
            "remove the checkpoint from the last stage",
            part.certainty == "suspected",
            "remove it, unless `remat-migrate measure` shows that the compiled program then needs"
            " more memory",
            partial(remove_site, project, site),
        )
        return self.finding(
            site.module.source,
            site.span,
            f"`{site.api}` wraps the last stage of what `{derivative.transform.name}`"
            " differentiates; it saves no memory, and may compute the stage twice",
            confidence="medium" if part.certainty in ("certain", "likely") else "low",
            related=(differentiated_here(part),),
            fix=fix,
        )
