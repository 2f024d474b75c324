"""RMT301: the function that is differentiated is itself the checkpoint.

https://github.com/jax-ml/jax/issues/12792
"""

from __future__ import annotations

from collections.abc import Iterator

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.placement.nested_checkpoints import calls_within
from remat_migrate.analysis.placement.whole_and_last import (
    DifferentiatedPart,
    Sureness,
    parts_in,
    wraps_policy,
)
from remat_migrate.analysis.sites.site import sites_in
from remat_migrate.rule import Confidence, Example, Finding, Rule

from .placement_fixes import differentiated_here, stages_fix

CONFIDENCE: dict[Sureness, Confidence] = {
    "certain": "high",
    "likely": "medium",
    "exported": "low",
    "suspected": "low",
}


class WholeFunction(Rule):
    """## What it does

    Finds a checkpoint around all of what is differentiated: the function that `jax.grad` and the
    like are given, directly, by decorators, through `partial` or `jit`, or by a function that does
    nothing but call it and reduce what it gives; a Flax module that a training state applies
    (`state.apply_fn`); and `nn.remat(Stack)` around a whole stack of layers, where the model has
    nothing beside it but single layers such as an embedding and a head.

    Left alone are: a gradient that is differentiated again; a function that is also a stage of
    something larger, or runs in a loop; a derivative rule; a checkpoint with a policy.

    ## Why is this bad?

    The backward pass starts by computing the whole function again, with everything it keeps: the
    memory that it takes at most is the same as without the checkpoint, and the function is computed
    twice. `remat-migrate measure` prints both.

    ## Fix

    Takes the checkpoint off, and puts it on the stages of the function but the last, where stages
    can be seen.
    """

    code, name = "RMT301", "whole-function"
    severity = "note"
    url = "https://github.com/jax-ml/jax/issues/12792"
    wrong = [
        Example(
            "import jax\nimport jax.numpy as jnp\n\n\n"
            "def layer(weight, x):\n"
            "    return jnp.tanh(x @ weight)\n\n\n"
            "def loss(weights, x):\n"
            "    x = layer(weights[0], x)\n"
            "    x = layer(weights[1], x)\n"
            "    return layer(weights[2], x).sum()\n\n\n"
            "step = jax.value_and_grad(jax.checkpoint(loss))\n",
            "import jax\n"
            "import jax.numpy as jnp\n\n\n"
            "def layer(weight, x):\n"
            "    return jnp.tanh(x @ weight)\n\n\n"
            "def loss(weights, x):\n"
            "    x = jax.checkpoint(layer)(weights[0], x)\n"
            "    x = jax.checkpoint(layer)(weights[1], x)\n"
            "    return layer(weights[2], x).sum()\n\n\n"
            "step = jax.value_and_grad(loss)\n",
        ),
        Example("import jax\n\n\ndef slope(loss):\n    return jax.grad(jax.checkpoint(loss))\n"),
        Example(
            "from functools import partial\n\nimport jax\n\n\n"
            "def step(model, weights, x):\n"
            "    @partial(jax.value_and_grad, has_aux=True)\n"
            "    @jax.checkpoint\n"
            "    def loss(weights):\n"
            "        return model(weights, x).sum(), {}\n\n"
            "    return loss(weights)\n"
        ),
        Example(
            "import jax\nimport jax.numpy as jnp\n\n\n"
            "def step(model, weights, x, y):\n"
            "    model = jax.checkpoint(model)\n\n"
            "    def loss(weights):\n"
            "        return jnp.mean((model(weights, x) - y) ** 2)\n\n"
            "    return jax.grad(loss)(weights)\n"
        ),
    ]
    right = [
        # One stage of several.
        "import jax\n\n\n"
        "def slope(encode, decode):\n"
        "    encode = jax.checkpoint(encode)\n"
        "    return jax.grad(lambda x: decode(encode(x)))\n",
        # Each round is one stage of the scan.
        "import jax\n\n\n"
        "def slope(loss, batches):\n"
        "    loss = jax.checkpoint(loss)\n\n"
        "    def total(weights):\n"
        "        return jax.lax.map(lambda batch: loss(weights, batch), batches).sum()\n\n"
        "    return jax.grad(total)\n",
        # A documented idiom: the policy saves what is dear.
        "import jax\n\n\n"
        "def slope(loss):\n"
        "    policy = jax.checkpoint_policies.dots_saveable\n"
        "    return jax.grad(jax.checkpoint(loss, policy=policy))\n",
        # The gradient is differentiated again.
        "import jax\n\n\ndef curvature(f):\n    return jax.grad(jax.grad(jax.checkpoint(f)))\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each checkpoint that is all of what is differentiated."""
        if not sites_in(project, module):
            return
        for part in parts_in(project, module):
            if part.found.part == "last" or wraps_policy(part.site):
                continue
            # Around checkpointed stages it is RMT305: it only has to come off.
            if not calls_within(project, part.found.applied):
                yield self._finding(project, part)

    def _finding(self, project: Project, part: DifferentiatedPart) -> Finding:
        site, derivative = part.site, part.derivative
        confidence = CONFIDENCE[part.sureness]
        fix, reason = stages_fix(
            project,
            part,
            "take it off, and put checkpoints on the stages of the function but the last, or give"
            " it a policy; `remat-migrate measure` tells what each saves",
        )
        if part.found.part == "bulk":
            found = (
                "on a whole stack of layers in what `{}` differentiates: all that the layers keep"
            )
            found += " is kept together when the stack is computed again"
        elif derivative.gives_value:
            found = (
                "on all of what `{}` differentiates: it is computed twice, and no memory is saved"
            )
        else:
            found = "on all of what `{}` differentiates: at best no memory is saved"
        return self.finding(
            site.module.source,
            site.span,
            f"`{site.api}` {found.format(derivative.gradient.name)}",
            confidence=confidence,
            related=(differentiated_here(part),),
            fix=fix,
            reason=reason,
        )
