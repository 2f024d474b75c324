"""RMT302: a checkpoint on the last stage of what is differentiated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from remat_migrate.model import Module, Project
from remat_migrate.model.callable import targets_of
from remat_migrate.model.parts import DifferentiatedPart, wraps_policy
from remat_migrate.rule import Confidence, Example, Finding, Rule

from .placement_fixes import differentiated_here, placement_fix

# A head whose logits are larger than all else does need its checkpoint.
_HEAD = re.compile(
    r"softmax|logsumexp|cross_?entropy|xent|vocab|logit|one_hot|embed|head|decode|token|unembed",
    re.IGNORECASE,
)


class LastStage(Rule):
    """## What it does

    Finds a checkpoint on the stage of a differentiated function that comes last: what it gives is
    returned, or only summed up. Not where it may be a large head: a softmax, or a vocabulary.

    ## Why it matters

    The backward pass starts with the last stage. What the checkpoint drops is computed again at
    once, while everything else is still kept: the most memory is the same, and the stage is
    computed twice.

    ## Fix

    Takes it off. `remat-migrate measure` tells whether the compiled program agrees.
    """

    code, name = "RMT302", "last-stage"
    wrong = [
        Example(
            "import jax\nimport jax.numpy as jnp\n\n\n"
            "def layer(x, w):\n"
            "    return jnp.tanh(x @ w)\n\n\n"
            "def step(weights, x):\n"
            "    last = jax.checkpoint(layer)\n\n"
            "    def loss(weights):\n"
            "        hidden = layer(x, weights[0])\n"
            "        return jnp.mean(last(hidden, weights[1]))\n\n"
            "    return jax.grad(loss)(weights)\n",
            "import jax\n"
            "import jax.numpy as jnp\n\n\n"
            "def layer(x, w):\n"
            "    return jnp.tanh(x @ w)\n\n\n"
            "def step(weights, x):\n"
            "    last = layer\n\n"
            "    def loss(weights):\n"
            "        hidden = layer(x, weights[0])\n"
            "        return jnp.mean(last(hidden, weights[1]))\n\n"
            "    return jax.grad(loss)(weights)\n",
        ),
    ]
    right = [
        # The first of two stages.
        "import jax\nimport jax.numpy as jnp\n\n\n"
        "def layer(x, w):\n"
        "    return jnp.tanh(x @ w)\n\n\n"
        "def step(weights, x):\n"
        "    first = jax.checkpoint(layer)\n\n"
        "    def loss(weights):\n"
        "        return jnp.mean(layer(first(x, weights[0]), weights[1]))\n\n"
        "    return jax.grad(loss)(weights)\n",
        # A softmax over a vocabulary is larger than all that comes before it.
        "import jax\nimport jax.numpy as jnp\n\n\n"
        "def layer(x, w):\n"
        "    return jnp.tanh(x @ w)\n\n\n"
        "def head(x, w):\n"
        "    return jax.nn.log_softmax(x @ w)\n\n\n"
        "def step(weights, x):\n"
        "    last = jax.checkpoint(head)\n\n"
        "    def loss(weights):\n"
        "        return jnp.mean(last(layer(x, weights[0]), weights[1]))\n\n"
        "    return jax.grad(loss)(weights)\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each checkpoint that is the last stage of what is differentiated."""
        if not project.sites_in(module):
            return
        for part in project.placement.parts(module):
            if part.found.part != "last" or wraps_policy(part.site):
                continue
            if not may_be_head(project, part):
                yield self._finding(project, part)

    def _finding(self, project: Project, part: DifferentiatedPart) -> Finding:
        from remat_migrate.rewrite.placement import remove_site

        site, derivative = part.site, part.derivative
        confidence: Confidence = "medium" if part.sureness in ("certain", "likely") else "low"
        fix, reason = placement_fix(
            "take it off the last stage",
            part.sureness == "suspected",
            "take it off, unless the compiled program needs more memory without it:"
            " `remat-migrate measure` tells",
            partial(remove_site, project, site),
        )
        return self.finding(
            site.module.source,
            site.span,
            f"`{site.api}` on the last stage of what `{derivative.gradient.name}` differentiates:"
            " it is computed twice, and no memory is saved",
            severity="note",
            confidence=confidence,
            related=(differentiated_here(part),),
            fix=fix,
            reason=reason,
        )


def may_be_head(project: Project, part: DifferentiatedPart) -> bool:
    """Whether the stage may give something larger than it keeps: by the words in its source."""
    texts: list[str] = [part.site.target or ""]
    functions = list(targets_of(project.evaluator, part.found.applied.target))
    for target in functions:
        function = target.function
        texts.append(function.module.segment(function.node))
    call, module = part.found.call, part.found.module
    if call is not None and module is not None:
        around = module.enclosing_function(call)
        assert around is not None
        texts.append(module.segment(around))
    return not functions or any(_HEAD.search(text) for text in texts)
