"""RMT306: `prevent_cse=False` on a checkpoint that does not run in a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from remat_migrate.api import (
    Confidence,
    Example,
    Finding,
    Module,
    Project,
    Related,
    Rule,
    Safety,
    Site,
    sites_in,
)
from remat_migrate.api.code import Class, Constant, External, Place, class_chain, in_test
from remat_migrate.api.placement import LoopUse, Placement, constants, placement_of, python_loop

from .shared.placement_fixes import placement_fix

_LIBRARIES = ("flax.", "haiku.", "equinox.")
_STEP = """\
import jax


def step(layers, x):
    def loss(x):
        for layer in layers:
            x = jax.checkpoint(layer, prevent_cse=%s)(x)
        return x.sum()

    return jax.grad(loss)(x)
"""


_BRANCHES = """\
import jax


def step(layer, weights, x, scan):
    body = jax.checkpoint(layer, prevent_cse=%s)

    def loss(x):
        if scan:
            x, _ = jax.lax.scan(body, x, weights)
        else:
            for weight in weights:
                x, _ = body(x, weight)
        return x.sum()

    return jax.grad(loss)(x)
"""


class CseOutsideLoop(Rule):
    """## What it does
    Checks for `prevent_cse=False` on a checkpoint that is called inside a differentiated function,
    or in a Python loop of a module, with no JAX loop between the two. It may run in a JAX loop
    elsewhere, for example if a flag chooses between a scan and a Python loop.

    ## Why is this bad?
    The barriers that `prevent_cse=True` adds by default put the recomputation after the forward
    pass. Without them, the compiler merges the two or recomputes early, and a program under
    `jax.jit` needs as much memory as without the checkpoint. Only in a loop are the two passes
    separate without barriers.

    ## Fix
    Passes `prevent_cse=True`.
    """

    code, name = "RMT306", "cse-outside-loop"
    fix_safety = Safety.UNSAFE
    severity = "note"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"
    wrong = [Example(_STEP % "False", _STEP % "True"), Example(_BRANCHES % "False")]
    right = [
        _BRANCHES % "not scan",
        "import jax\n\n\n"
        "def step(layer, weights, x):\n"
        "    body = jax.checkpoint(layer, prevent_cse=False)\n"
        "    return jax.grad(lambda x: jax.lax.scan(body, x, weights)[0].sum())(x)\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each differentiated checkpoint that never runs in a loop."""
        for site in sites_in(project, module):
            option = site.arguments.get("prevent_cse")
            if site.application is None or option is None or not site.definition.same_function:
                continue
            found = outside_loops(site, project)
            if found is None or in_test(module, site.application):
                continue
            from remat_migrate.api.rewrites import set_option

            owner, call = found.calls[0]
            advice = "leave `prevent_cse` at its default"
            literal = isinstance(option.value, ast.Constant)
            if found.also_in_loop or not literal:
                advice = "pass `prevent_cse=False` only where it runs in a loop"
            fix = placement_fix(
                "pass `prevent_cse=True`, the default",
                found.confidence == "low" or found.also_in_loop or not literal,
                advice,
                partial(set_option, project, site, "prevent_cse", True),
            )
            yield self.finding(
                module.source,
                site.span,
                "`prevent_cse=False` outside a loop; the program that `jax.jit` compiles needs as"
                " much memory as without the checkpoint",
                confidence=found.confidence,
                related=(Related(*owner.location(call), "called here, in no compiled loop"),),
                fix=fix,
            )


@dataclass(frozen=True, slots=True)
class _Outside:
    """Calls of a checkpoint outside loops.

    Attributes:
        calls: the calls.
        confidence: how sure it is that no loop is around them.
        also_in_loop: whether the checkpoint is used in a loop elsewhere.
    """

    calls: list[Place]
    confidence: Confidence
    also_in_loop: bool


def outside_loops(site: Site, project: Project) -> _Outside | None:
    """Return the differentiated calls of a site's function outside loops; None without any."""
    placement = placement_of(project)
    calls: list[Place] = []
    confidence: Confidence = "medium"
    also_in_loop = False
    option = site.arguments["prevent_cse"]
    # A factory may pass on what its callers choose.
    if constants(placement.project, option.module, option.value) != {Constant(False)}:
        return None
    for occurrence in placement.occurrences(site):
        if occurrence.how == "exported":
            confidence = "low"
        elif placement.loops_of(occurrence):
            also_in_loop = True
        elif occurrence.how != "called":
            return None
        else:
            assert isinstance(occurrence.node, ast.expr)
            module, node = occurrence.module, occurrence.node
            if not placement.differentiated_backward.only_outside_loops(module, node):
                if not _in_loop_of_layers(placement, module, node):
                    return None
                confidence = "low"
            calls.append((module, node))
    return _Outside(calls, confidence, also_in_loop) if calls and site.certain else None


def _in_loop_of_layers(placement: Placement, module: Module, node: ast.expr) -> bool:
    """Return whether a call is in a Python loop of a neural network module that no loop runs."""
    function = module.enclosing_function(node)
    cls = module.enclosing_class(function) if function is not None else None
    if cls is None or not python_loop(module, node):
        return False
    if placement.differentiated_backward.contains(module, node):
        return False  # in a loop
    bases = class_chain(placement.evaluator, Class(module, cls))
    if not any(isinstance(b, External) and b.name.startswith(_LIBRARIES) for b in bases):
        return False
    return not any(isinstance(use, LoopUse) for use in placement.transformed.get(cls, ()))
