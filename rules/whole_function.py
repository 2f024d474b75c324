"""RMT301: the function that is differentiated is itself checkpointed."""

from __future__ import annotations

from collections.abc import Iterator

from remat_migrate.api import Confidence, Example, Finding, Module, Project, Rule, Safety, sites_in
from remat_migrate.api.placement import (
    Certainty,
    DifferentiatedPart,
    calls_within,
    parts_in,
    wraps_policy,
)

from .shared.placement_fixes import differentiated_here, stages_fix

CONFIDENCE: dict[Certainty, Confidence] = {
    "certain": "high",
    "likely": "medium",
    "exported": "low",
    "suspected": "low",
}


_STEP = """\
import jax
import jax.numpy as jnp


def layer(weight, x):
    return jnp.tanh(x @ weight)


def loss(weights, x):
    x = %s(weights[0], x)
    x = %s(weights[1], x)
    return layer(weights[2], x).sum()


step = jax.value_and_grad(%s)
"""

_STACK = """\
import jax
import jax.numpy as jnp


def layer(x, w):
    return jnp.tanh(x @ w), None


def step(weights, head, x):
    def loss(weights):
        def stack(x):
            return jax.lax.scan(%s, x, weights)[0]

        return jnp.tanh(%s(x) @ head).sum()

    return jax.grad(loss)(weights)
"""


class WholeFunction(Rule):
    """## What it does
    Checks for a checkpoint around all of what is differentiated: the function that is passed to
    `jax.grad` and similar functions, directly, by decorators, through `partial` or `jit`, or
    through a function that only calls it and reduces its result, or adds it to others like it; a
    model that a training state or a Haiku transform applies; and `nn.remat(Stack)` around a whole
    stack of layers, where the rest of the model is single layers such as an embedding and a head.

    Ignores gradients that are differentiated again, functions that are also a stage of something
    larger or run in a loop, checkpoints that other work follows, such as `h(checkpoint(g)(x))`,
    what `jax.vjp` differentiates, custom derivative rules, tests, and checkpoints with a policy.

    ## Why is this bad?
    The backward pass starts by recomputing the whole function with all its residuals. Peak memory
    is the same as without the checkpoint, and the function is computed once more. `remat-migrate
    measure` prints both.

    ## Fix
    Removes the checkpoint, and checkpoints every stage of the function but the last, where the
    stages can be separated.
    """

    code, name = "RMT301", "whole-function"
    fix_safety = Safety.UNSAFE
    severity = "note"
    url = "https://github.com/jax-ml/jax/issues/12792"
    wrong = [
        Example(
            _STEP % ("layer", "layer", "jax.checkpoint(loss)"),
            _STEP % ("jax.checkpoint(layer)", "jax.checkpoint(layer)", "loss"),
        ),
        Example(
            _STACK % ("layer", "jax.checkpoint(stack)"),
            _STACK % ("jax.checkpoint(layer, prevent_cse=False)", "stack"),
        ),
        Example("import jax\n\n\ndef slope(loss):\n    return jax.grad(jax.checkpoint(loss))\n"),
    ]
    right = [
        # One stage of several.
        "import jax\n\n\n"
        "def slope(encode, decode):\n"
        "    encode = jax.checkpoint(encode)\n"
        "    return jax.grad(lambda x: decode(encode(x)))\n",
        # Each iteration is one stage of the scan.
        "import jax\n\n\n"
        "def slope(loss, batches):\n"
        "    loss = jax.checkpoint(loss)\n\n"
        "    def total(weights):\n"
        "        return jax.lax.map(lambda batch: loss(weights, batch), batches).sum()\n\n"
        "    return jax.grad(total)\n",
        # A documented idiom: the policy saves what is expensive to recompute.
        "import jax\n\n\n"
        "def slope(loss):\n"
        "    policy = jax.checkpoint_policies.dots_saveable\n"
        "    return jax.grad(jax.checkpoint(loss, policy=policy))\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each checkpoint around all of what is differentiated."""
        if not sites_in(project, module):
            return
        for part in parts_in(project, module):
            if part.found.part == "last" or wraps_policy(part.site):
                continue
            # Around checkpointed stages it is RMT305, which only removes it.
            if not calls_within(project, part.found.applied):
                yield self._finding(project, part)

    def _finding(self, project: Project, part: DifferentiatedPart) -> Finding:
        site, derivative = part.site, part.derivative
        whole = "everything that `{}` differentiates"
        if part.found.part == "term":
            whole = "everything in one term of what `{}` differentiates"
        if part.found.part == "bulk":
            message = "a whole stack of layers in what `{}` differentiates"
            message += "; recomputing the stack keeps the residuals of all layers at once"
        elif derivative.returns_value:
            message = f"{whole}; it saves no memory, and computes everything once more"
        else:
            message = f"{whole}; it saves no memory, and may compute everything once more"
        return self.finding(
            site.module.source,
            site.span,
            f"`{site.api}` wraps {message.format(derivative.transform.name)}",
            confidence=CONFIDENCE[part.certainty],
            related=(differentiated_here(part),),
            fix=stages_fix(
                project, part, "remove this checkpoint, and checkpoint every stage but the last"
            ),
        )
