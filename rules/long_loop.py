"""RMT309: a differentiated loop of many steps keeps the carry of every step.

Griewank and Walther, "Revolve" (2000): https://doi.org/10.1145/347837.347846
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping

from remat_migrate.api import Example, Finding, Module, Project, Rule
from remat_migrate.api.code import External
from remat_migrate.api.placement import (
    LoopUse,
    Placement,
    differentiated_loops,
    in_checkpoint,
    numbers,
    only_checkpoint,
    placement_of,
)

MANY = 256
# Functions that make an array, and the name and position of the argument that gives its length.
_RANGE = "jax.numpy.arange"
_LENGTHS: Mapping[str, tuple[str, int]] = {
    _RANGE: ("stop", 0),
    "jax.numpy.linspace": ("num", 2),
    "jax.random.split": ("num", 1),
}

_RNN = """\
import jax
import jax.numpy as jnp


@jax.grad
def loss(w, h):
    def step(h, t):
        return jnp.tanh(h @ w + t), None

    return jax.lax.scan(%s, h, jnp.arange(%s))[0].sum()
"""


class LongLoop(Rule):
    """## What it does
    Checks for a differentiated `scan` or `fori_loop` of 256 or more steps whose body is a
    checkpoint. The number of steps must be known: a constant of the project as a bound, as
    `length`, or as the length of `jnp.arange`, `jnp.linspace`, or `jax.random.split`.

    ## Why is this bad?
    A checkpoint on the body discards what a step computes, but the loop keeps the carry of every
    step. If N steps run in segments of √N, with a checkpoint on each segment, about 2√N carries are
    kept, at the cost of about one more forward pass.

    ## Fix
    Changes nothing: `remat-migrate plan --apply` writes the segments, and shows what they save and
    cost. The page "Differentiate a long loop" has the forms for Flax, Haiku, and Equinox.
    """

    code, name = "RMT309", "long-loop"
    severity = "note"
    url = "https://doi.org/10.1145/347837.347846"
    wrong = [
        Example(_RNN % ("jax.checkpoint(step, prevent_cse=False)", "1000")),
        Example(
            "import jax\n\nSTEPS = 1024\n\n\n"
            "def simulate(state, dt):\n"
            "    step = jax.checkpoint(lambda _, s: s + dt * jax.numpy.sin(s), prevent_cse=False)\n"
            "    return jax.lax.fori_loop(0, STEPS, step, state).sum()\n\n\n"
            "slope = jax.grad(simulate)\n"
        ),
    ]
    right = [
        _RNN % ("jax.checkpoint(step, prevent_cse=False)", "12"),
        # Without a checkpoint on the body, memory is not short; RMT303 looks at these.
        _RNN % ("step", "1000"),
        # A segment of a longer loop.
        "import jax\n\n\n"
        "@jax.grad\n"
        "def loss(w, h):\n"
        "    step = jax.checkpoint(lambda h, _: (jax.numpy.tanh(h @ w), None))\n\n"
        "    @jax.checkpoint\n"
        "    def segment(h, _):\n"
        "        return jax.lax.scan(step, h, None, 256)\n\n"
        "    return jax.lax.scan(segment, h, None, 40)[0].sum()\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each such loop."""
        placement = placement_of(project)
        for loop in differentiated_loops(placement, module):
            steps = _steps(placement, loop) if _keeps_only_carries(placement, loop) else 0
            if steps < MANY or in_checkpoint(placement, module, loop.node):
                continue
            segment = math.isqrt(steps)
            yield self.finding(
                *module.location(loop.node),
                f"the gradient of `{loop.transform.name}` keeps the carries of all {steps} steps in"
                f" memory; in checkpointed segments of {segment} steps, it keeps about"
                f" {segment + math.ceil(steps / segment)}",
                confidence="medium",
                reason="`remat-migrate plan --apply` writes the segments",
            )


def _keeps_only_carries(placement: Placement, loop: LoopUse) -> bool:
    """Return whether the body of a compiled loop is nothing but a checkpoint."""
    if not loop.transform.differentiable or loop.transform.own_checkpoints:
        return False
    if loop.compiles_to_loop(placement.project) != "yes":
        return False
    bodies = placement.operations.run_by(loop.functions)
    return bool(bodies) and all(only_checkpoint(placement.operations, body) for body in bodies)


def _steps(placement: Placement, loop: LoopUse) -> int:
    """Return how many steps a loop has at least; 0 if that is unknown."""
    module, transform = loop.module, loop.transform

    def counts(node: ast.expr | None) -> set[int]:
        return numbers(placement.project, module, node) or set()

    if transform.bounds is not None:
        first, last = (counts(loop.args[i]) if loop.args[i:] else () for i in transform.bounds)
        return min(last) - max(first) if first and last else 0
    length = loop.argument(*transform.length) if transform.length is not None else None
    if length is None:
        length = _length_of(placement, module, loop.argument("xs", 2))
    return min(counts(length), default=0)


def _length_of(placement: Placement, module: Module, array: ast.expr | None) -> ast.expr | None:
    """Return the expression of the length of an array, if a call makes the array."""
    if isinstance(array, ast.Name):
        made = [b.value for b in module.reaching(array) if not b.path]
        array = made[0] if len(made) == 1 else None
    if not isinstance(array, ast.Call):
        return None
    for value in placement.evaluator.values(module, array.func):
        if isinstance(value, External) and value.name in _LENGTHS:
            name, position = _LENGTHS[value.name]
            if value.name != _RANGE or len(array.args) == 1:
                by_name = (k.value for k in array.keywords if k.arg == name)
                return next(by_name, array.args[position] if array.args[position:] else None)
    return None
