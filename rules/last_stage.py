"""RMT302: a checkpoint on the last stage of what is differentiated."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.placement.call_graph import own_nodes
from remat_migrate.analysis.placement.whole_and_last import (
    DifferentiatedPart,
    parts_in,
    wraps_policy,
)
from remat_migrate.analysis.placement.workload import is_light
from remat_migrate.analysis.sites.site import sites_in
from remat_migrate.analysis.values.callees import targets_of
from remat_migrate.analysis.values.values import Function
from remat_migrate.rule import Confidence, Example, Finding, Rule

from .placement_fixes import HEAD_WORDS, differentiated_here, placement_fix

# What can make a large array of small ones.
_BROADCASTING = frozenset(
    {
        "broadcast_to", "broadcast_arrays", "broadcast_in_dim", "expand_dims", "meshgrid", "outer",
        "repeat", "tile", "vmap", "kron",
    }
)  # fmt: skip


class LastStage(Rule):
    """## What it does

    Finds a checkpoint on the last stage of a differentiated function: its result is returned, alone
    or with metrics, or is only reduced to a loss. A loss function of the outputs is such a stage.
    Large heads are left alone: a product with a vocabulary, or a function that broadcasts its
    arguments against each other, computes more than it is given.

    ## Why is this bad?

    The backward pass starts with the last stage. What the checkpoint drops is computed again at
    once, while everything else is still kept: the most memory is the same, and the stage is
    computed twice.

    ## Fix

    Takes it off. `remat-migrate measure` tells whether the compiled program agrees.
    """

    code, name = "RMT302", "last-stage"
    severity = "note"
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
        if not sites_in(project, module):
            return
        for part in parts_in(project, module):
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
            confidence=confidence,
            related=(differentiated_here(part),),
            fix=fix,
            reason=reason,
        )


def may_be_head(project: Project, part: DifferentiatedPart) -> bool:
    """Whether the stage may compute something larger than what it is given.

    A product with a vocabulary, by the words in its source; of a stage without any product, only
    what broadcasts its arguments against each other.
    """
    functions = [t.function for t in targets_of(project.evaluator, part.found.applied.target)]
    if not functions:
        return True
    if all(is_light(project.evaluator, function) for function in functions):
        return any(_broadcasts(project, function, set()) for function in functions)
    texts = [part.site.target or ""]
    texts += [function.module.segment(function.node) for function in functions]
    for module, call in part.found.calls[-1:]:
        around = module.enclosing_function(call)
        assert around is not None
        texts.append(module.segment(around))
    return any(HEAD_WORDS.search(text) for text in texts)


def _broadcasts(project: Project, function: Function, seen: set[Function]) -> bool:
    """Whether a function, or one that it calls, may make an array larger than its arguments."""
    seen.add(function)
    module = function.module
    for node in own_nodes(function.node):
        if isinstance(node, ast.Subscript) and not _is_index(module, node):
            if any(isinstance(n, ast.Constant) and n.value is None for n in ast.walk(node.slice)):
                return True
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in _BROADCASTING:
                return True
            for value in project.values(module, node.func):
                for target in targets_of(project.evaluator, value):
                    if target.function not in seen and _broadcasts(project, target.function, seen):
                        return True
    return False


def _is_index(module: Module, node: ast.Subscript) -> bool:
    """Whether `labels[:, None]` only picks elements."""
    match module.parent(node):
        case ast.Call(func=ast.Name(id="take_along_axis") | ast.Attribute(attr="take_along_axis")):
            return True
    return False
