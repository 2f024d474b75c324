"""RMT303: a differentiated scan has no checkpoint on its body.

https://docs.jax.dev/en/latest/gradient-checkpointing.html: "recursive and scan".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial

from remat_migrate.api import Example, Finding, Fix, Module, Project, Rule, Safety
from remat_migrate.api.changes import Change
from remat_migrate.api.placement import (
    LoopUse,
    differentiated_loops,
    has_heavy_body,
    in_checkpoint,
    placement_of,
)

from .shared.placement_fixes import placement_fix

# The loops over layers and time steps; `jax.lax.map` runs over a batch.
SCANS = frozenset(
    {"jax.lax.scan", "haiku.scan", "haiku.layer_stack", "flax.linen.scan", "flax.nnx.scan"}
)


_SCAN = """\
import jax
import jax.numpy as jnp


%sdef layer(x, w):
    return jnp.tanh(x @ w), None


def loss(weights, x):
    x, _ = jax.lax.scan(%s, x, weights)
    return x.sum()


step = jax.grad(loss)
"""


class ScanBodyBare(Rule):
    """## What it does
    Checks for a scan inside a function that the project differentiates, whose body multiplies
    matrices, and is neither a checkpoint nor calls one. This is advice: only the sizes tell whether
    the memory matters.

    ## Why is this bad?
    Every iteration of the scan keeps its residuals for the backward pass, so memory grows with the
    number of iterations times the residuals of one. With a checkpoint on the body, an iteration
    keeps only its inputs, at the cost of about one more forward pass.

    ## Fix
    Wraps the body in `jax.checkpoint(body, prevent_cse=False)`, or for `flax.linen.scan` in
    `nn.remat(Module, prevent_cse=False)` with the `name=` under which the parameters are stored.
    `remat-migrate measure` shows what it saves.
    """

    code, name = "RMT303", "scan-body-bare"
    fix_safety = Safety.UNSAFE
    severity = "note"
    url = "https://docs.jax.dev/en/latest/gradient-checkpointing.html"
    wrong = [
        Example(
            _SCAN % ("", "layer"),
            _SCAN % ("", "jax.checkpoint(layer, prevent_cse=False)"),
        ),
    ]
    right = [
        _SCAN % ("@jax.checkpoint\n", "layer"),
        # Nothing differentiates it.
        "import jax\n\n\n"
        "def run(weights, x):\n"
        "    return jax.lax.scan(lambda x, w: (x @ w, None), x, weights)\n",
        # An iteration has hardly any residuals.
        "import jax\n\n\n"
        "@jax.grad\n"
        "def loss(xs):\n"
        "    return jax.lax.scan(lambda total, x: (total + x, None), 0.0, xs)[0]\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each differentiated scan without a checkpoint on its body."""
        placement = placement_of(project)
        for loop in differentiated_loops(placement, module):
            compiled = loop.compiles_to_loop(project)
            if loop.transform.name not in SCANS or compiled == "no":
                continue
            if not has_heavy_body(placement, loop):
                continue
            if not in_checkpoint(placement, module, loop.node):
                yield self._finding(project, loop, compiled == "yes")

    def _finding(self, project: Project, loop: LoopUse, certain: bool) -> Finding:
        name, call = loop.transform.name, loop.node
        wrapper = "nn.remat(Module" if name == "flax.linen.scan" else "jax.checkpoint(body"
        advice = f"if memory is short, use `{wrapper}, prevent_cse=False)`"
        fix = Fix.manual(advice)
        if isinstance(call, ast.Call) and loop.subject is not None:
            make = partial(_wrap_body, project, loop)
            fix = placement_fix("checkpoint the body", not certain, advice, make)
        return self.finding(
            *loop.module.location(call),
            f"the body of `{name}` is differentiated without a checkpoint; every iteration keeps"
            " its residuals",
            confidence="medium" if certain else "low",
            fix=fix,
        )


def _wrap_body(project: Project, loop: LoopUse) -> Sequence[Change]:
    from remat_migrate.api.rewrites import wrap_body

    assert isinstance(loop.node, ast.Call)
    assert loop.subject is not None
    return wrap_body(project, loop.module, loop.node, loop.subject)
