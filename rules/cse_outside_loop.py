"""RMT306: `prevent_cse=False` on a checkpoint that does not run in a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from remat_migrate.analysis import Module, Project, Site
from remat_migrate.analysis.placement.placement import placement_of
from remat_migrate.analysis.sites.site import sites_in
from remat_migrate.rule import Confidence, Example, Finding, Related, Rule, Safety

from .shared.placement_fixes import placement_fix

_STEP = """\
import jax


def step(layers, x):
    def loss(x):
        for layer in layers:
            x = jax.checkpoint(layer, prevent_cse=%s)(x)
        return x.sum()

    return jax.grad(loss)(x)
"""


class CseOutsideLoop(Rule):
    """## What it does
    Checks for `prevent_cse=False` on a checkpoint that is called inside a differentiated function,
    with no JAX loop between the two.

    ## Why is this bad?
    Under `jax.jit` the compiler sees the recomputation next to the original computation and merges
    the two, so no memory is saved. The barriers that `prevent_cse=True` adds by default prevent
    that. Only in a loop are the two passes separate without them.

    ## Fix
    Passes `prevent_cse=True`.
    """

    code, name = "RMT306", "cse-outside-loop"
    fix_safety = Safety.UNSAFE
    severity = "note"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"
    wrong = [Example(_STEP % "False", _STEP % "True")]
    right = [
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
            if not isinstance(option.value, ast.Constant) or option.value.value is not False:
                continue
            found = never_in_loops(site, project)
            if found is None:
                continue
            from remat_migrate.rewrite.placement import set_option

            calls, confidence = found
            fix, reason = placement_fix(
                "pass `prevent_cse=True`, the default",
                confidence == "low",
                "leave `prevent_cse` at its default",
                partial(set_option, project, site, "prevent_cse", True),
            )
            yield self.finding(
                module.source,
                site.span,
                "`prevent_cse=False` outside a loop; under `jax.jit` the compiler merges the"
                " recomputation with the forward pass and no memory is saved",
                confidence=confidence,
                related=(Related(*module.location(calls[0]), "called here, outside any loop"),),
                fix=fix,
                reason=reason,
            )


def never_in_loops(site: Site, project: Project) -> tuple[list[ast.expr], Confidence] | None:
    """Return the calls of a site's function, if all are differentiated and none is in a loop."""
    placement = placement_of(project)
    calls: list[ast.expr] = []
    confidence: Confidence = "medium"
    for occurrence in placement.of_site(site):
        if occurrence.how == "exported":
            confidence = "low"
            continue
        if occurrence.how != "called" or placement.loops_of(occurrence):
            return None
        if not placement.differentiated_backward.only_outside_loops(site.module, occurrence.node):
            return None
        assert isinstance(occurrence.node, ast.expr)
        calls.append(occurrence.node)
    return (calls, confidence) if calls and site.certain else None
