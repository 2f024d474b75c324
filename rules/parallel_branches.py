"""RMT307: the results of several checkpointed calls of one function are only added.

Measured: the compiled programs of `f(a) + f(b)` and of a sum over microbatches take as much memory
with the checkpoint as without; a scan over them takes as much as one branch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.analysis import Module, Project, Site
from remat_migrate.analysis.placement.parallel_branches import added_calls
from remat_migrate.analysis.placement.placement import placement_of
from remat_migrate.analysis.sites.site import sites_in
from remat_migrate.rule import Example, Finding, Related, Rule


class ParallelBranches(Rule):
    """## What it does
    Checks for a checkpointed function that is called several times in differentiated code, where
    the calls are independent and their results are only added: `f(a) + f(b)`, `sum(f(x) for x in
    xs)`, `total += f(x)` in a Python loop.

    ## Why is this bad?
    Nothing makes the compiler finish one branch before it starts the next. The gradient of a sum is
    the same constant for each branch, so all branches are recomputed at once and all their
    residuals are kept together.

    ## Fix
    Not fixed automatically. Use `jax.lax.map` or `jax.lax.scan` over the stacked inputs, with the
    checkpoint on the body.
    """

    code, name = "RMT307", "parallel-branches"
    severity = "note"
    wrong = [
        Example(
            "import jax\n\n\n"
            "def step(loss, weights, batches):\n"
            "    loss = jax.checkpoint(loss)\n\n"
            "    def total(weights):\n"
            "        return sum(loss(weights, batch) for batch in batches)\n\n"
            "    return jax.grad(total)(weights)\n"
        ),
        Example(
            "import jax\n\n\n"
            "def step(loss, weights, a, b):\n"
            "    loss = jax.checkpoint(loss)\n"
            "    return jax.grad(lambda w: (loss(w, a) + loss(w, b)) / 2)(weights)\n"
        ),
    ]
    right = [
        "import jax\n\n\n"
        "def step(loss, weights, batches):\n"
        "    loss = jax.checkpoint(loss)\n"
        "    total = lambda w: jax.lax.map(lambda batch: loss(w, batch), batches).sum()\n"
        "    return jax.grad(total)(weights)\n",
        # Each call depends on the previous one.
        "import jax\n\n\n"
        "def step(block, weights, x):\n"
        "    block = jax.checkpoint(block)\n\n"
        "    def total(weights):\n"
        "        y = x\n"
        "        for w in weights:\n"
        "            y = y + block(w, y)\n"
        "        return y.sum()\n\n"
        "    return jax.grad(total)(weights)\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each checkpoint whose results are only added."""
        for site in sites_in(project, module):
            if site.application is None or not site.definition.same_function or not site.certain:
                continue
            calls = branches_of(site, project)
            if calls:
                yield self.finding(
                    module.source,
                    site.span,
                    f"the results of `{site.api}` are only added; the compiled program recomputes"
                    " all calls at once and saves no memory",
                    confidence="medium",
                    related=tuple(
                        Related(*module.location(call), "one of the branches") for call in calls[:2]
                    ),
                    reason="stack the inputs and use `jax.lax.map` or `jax.lax.scan`, with the"
                    " checkpoint on the body",
                )


def branches_of(site: Site, project: Project) -> list[ast.Call]:
    """Return the calls of a site's function, if they are branches of a differentiated sum."""
    placement = placement_of(project)
    calls: list[ast.Call] = []
    for occurrence in placement.of_site(site):
        if occurrence.how == "exported":
            continue
        if occurrence.how != "called" or not isinstance(occurrence.node, ast.Call):
            return []
        calls.append(occurrence.node)
    if not calls or not added_calls(site.module, calls):
        return []
    plain = all(
        placement.differentiated_backward.only_outside_loops(site.module, call) for call in calls
    )
    return calls if plain else []
