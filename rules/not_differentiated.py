"""RMT308: nothing in the project differentiates a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from remat_migrate.analysis import Module, Project, Site
from remat_migrate.analysis.placement.placement import placement_of
from remat_migrate.analysis.sites.site import sites_in
from remat_migrate.analysis.values.callees import targets_of
from remat_migrate.rule import Example, Finding, Rule


class NotDifferentiated(Rule):
    """## What it does
    Checks for a checkpoint on a function of the project that no gradient in the project runs, as
    far as calls can be followed. Off by default: the users of a library differentiate its
    functions.

    ## Why is this bad?
    Without a gradient, a checkpoint only slows down tracing.

    ## Fix
    Not fixed automatically. Remove the checkpoint if nobody differentiates the function.
    """

    code, name = "RMT308", "not-differentiated"
    severity = "note"
    enabled = False
    wrong = [
        Example(
            "import jax\n\n\n"
            "def block(x):\n"
            "    return x * x\n\n\n"
            "def predict(x):\n"
            "    return jax.checkpoint(block)(x)\n"
        ),
    ]
    right = [
        "import jax\n\n\n"
        "def block(x):\n"
        "    return x * x\n\n\n"
        "def loss(x):\n"
        "    return jax.checkpoint(block)(x).sum()\n\n\n"
        "step = jax.grad(loss)\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each checkpoint that no gradient runs."""
        for site in sites_in(project, module):
            if site.application is not None and is_unused(site, project):
                yield self.finding(
                    module.source,
                    site.span,
                    f"nothing in the project differentiates the function that `{site.api}` wraps",
                    confidence="low",
                    reason="remove it if no other code differentiates the function",
                )


def is_unused(site: Site, project: Project) -> bool:
    """Return whether all uses of a site's function are visible and no gradient runs it."""
    placement = placement_of(project)
    occurrences = placement.of_site(site)
    if any(o.how in ("elsewhere", "differentiated") for o in occurrences):
        return False
    assert site.application is not None
    functions = {
        target.function.node
        for value in project.values(site.module, site.application)
        for target in targets_of(project.evaluator, value)
    }
    if site.subject is not None and site.form.startswith("decorator"):
        functions = {site.subject[1]}  # type: ignore[arg-type]
    reached = placement.differentiated.outside_loops | placement.differentiated.in_loops
    if not functions or functions & reached:
        return False
    return not any(placement.differentiated.contains(site.module, o.node) for o in occurrences)
