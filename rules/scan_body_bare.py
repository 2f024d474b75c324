"""RMT303: a scan that is differentiated, without a checkpoint on its body.

https://docs.jax.dev/en/latest/gradient-checkpointing.html: "recursive and scan".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.placement.loop_bodies import body_work
from remat_migrate.analysis.placement.loops import LoopUse
from remat_migrate.analysis.placement.placement import placement_of
from remat_migrate.rule import Confidence, Example, Finding, Rule

from .placement_fixes import placement_fix

# Those that are written for layers and time steps; `jax.lax.map` runs over a batch.
SCANS = frozenset(
    {"jax.lax.scan", "haiku.scan", "haiku.layer_stack", "flax.linen.scan", "flax.nnx.scan"}
)


class ScanBodyBare(Rule):
    """## What it does

    Finds a scan inside a function that the same project differentiates, whose body multiplies
    matrices or calls what cannot be seen, and neither is a checkpoint nor calls one. This is
    advice: whether the memory matters, only the sizes tell.

    ## Why is this bad?

    Every round of the scan keeps what its backward pass needs, so that memory grows with the number
    of rounds times what one round keeps. With a checkpoint on the body a round keeps its inputs,
    for about one more forward pass.

    ## Fix

    `jax.checkpoint(body, prevent_cse=False)`; in `flax.linen.scan`,
    `nn.remat(Module, prevent_cse=False)`, with the `name=` under which the parameters are stored.
    `remat-migrate measure` tells what it saves.
    """

    code, name = "RMT303", "scan-body-bare"
    severity = "note"
    url = "https://docs.jax.dev/en/latest/gradient-checkpointing.html"
    wrong = [
        Example(
            "import jax\nimport jax.numpy as jnp\n\n\n"
            "def layer(x, w):\n"
            "    return jnp.tanh(x @ w), None\n\n\n"
            "def loss(weights, x):\n"
            "    x, _ = jax.lax.scan(layer, x, weights)\n"
            "    return x.sum()\n\n\n"
            "step = jax.grad(loss)\n",
            "import jax\n"
            "import jax.numpy as jnp\n\n\n"
            "def layer(x, w):\n"
            "    return jnp.tanh(x @ w), None\n\n\n"
            "def loss(weights, x):\n"
            "    x, _ = jax.lax.scan(jax.checkpoint(layer, prevent_cse=False), x, weights)\n"
            "    return x.sum()\n\n\n"
            "step = jax.grad(loss)\n",
        ),
    ]
    right = [
        "import jax\nimport jax.numpy as jnp\n\n\n"
        "@jax.checkpoint\n"
        "def layer(x, w):\n"
        "    return jnp.tanh(x @ w), None\n\n\n"
        "def loss(weights, x):\n"
        "    x, _ = jax.lax.scan(layer, x, weights)\n"
        "    return x.sum()\n\n\n"
        "step = jax.grad(loss)\n",
        # Nothing differentiates it.
        "import jax\n\n\n"
        "def run(weights, x):\n"
        "    return jax.lax.scan(lambda x, w: (x @ w, None), x, weights)\n",
        # A round keeps next to nothing.
        "import jax\n\n\n"
        "@jax.grad\n"
        "def loss(xs):\n"
        "    return jax.lax.scan(lambda total, x: (total + x, None), 0.0, xs)[0]\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each scan that is differentiated and has a bare body."""
        for loop in placement_of(project).loops(module):
            if loop.loop.name not in SCANS or loop.real == "no" or not loop.use.certain:
                continue
            if not placement_of(project).reach_back.covers(module, loop.node):
                continue
            work = body_work(placement_of(project), loop)
            if work in ("heavy", "unseen"):
                yield self._finding(project, loop, work == "heavy" and loop.real == "yes")

    def _finding(self, project: Project, loop: LoopUse, heavy: bool) -> Finding:
        from remat_migrate.rewrite.placement import wrap_body

        confidence: Confidence = "medium" if heavy else "low"
        wrapper = (
            "nn.remat(Module" if loop.loop.name == "flax.linen.scan" else "jax.checkpoint(body"
        )
        advice = f"if memory is short: `{wrapper}, prevent_cse=False)`"
        call, body = loop.node, loop.use.subject
        fix, reason = None, advice
        if isinstance(call, ast.Call) and body is not None:
            fix, reason = placement_fix(
                "put a checkpoint on the body",
                confidence == "low",
                advice,
                partial(wrap_body, project, loop.module, call, body),
            )
        return self.finding(
            loop.module.source,
            loop.module.span(loop.node),
            f"`{loop.loop.name}` is differentiated, and its body is no checkpoint:"
            " every round keeps what it computes",
            confidence=confidence,
            fix=fix,
            reason=reason,
        )
