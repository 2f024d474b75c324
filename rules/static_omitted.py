"""RMT203: a static argument is left to its default."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from remat_migrate.api import Example, Fails, Finding, Project, Rule
from remat_migrate.api.policies import uses_next_implementation
from remat_migrate.api.statics import Misplaced, deliberate, misplaced_calls

from .shared.example_uses import BLOCK, DOUBLED, GRADIENT
from .shared.fixes import misplaced_fix, named_static_here

_block = partial(
    BLOCK.format,
    options="static_argnums=(2,)",
    parameters="x, scale=1.0, is_training=True",
    body="return scale * x if is_training else x",
)


class StaticOmitted(Rule):
    """## What it does
    Checks for calls of a checkpointed function that leave a static argument to its default.

    ## Why is this bad?
    `static_argnums` of `jax.checkpoint` counts the arguments that are passed. An argument that is
    left to its default is not among them, and JAX raises `ValueError`. The next implementation of
    `jax.checkpoint` (`jax_remat3`) allows it.

    ## Fix
    Passes the default by position.
    """

    code, name = "RMT203", "static-omitted"
    since = "0.3.16"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"

    wrong = [
        Example(
            _block(arguments="x"),
            _block(arguments="x, 1.0, True"),
            use=GRADIENT,
            fails=Fails("ValueError: .*static_argnums"),
            holds="assert value == 3 and (gradient == 1).all()\n",
        ),
    ]
    right = [Example(_block(arguments="x, 2.0, True"), use=GRADIENT, holds=DOUBLED)]

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Report each call that omits a static argument."""
        for found in misplaced_calls(project):
            # Negative indices are RMT207.
            if found.how == "omitted" and found.parameter.index >= 0:
                if not deliberate([found.call]) and not uses_next_implementation(project):
                    yield self._found(found, project)

    def _found(self, found: Misplaced, project: Project) -> Finding:
        call, static, name = found.call, found.static, found.parameter.name
        return self.finding(
            *call.module.location(call.node.func),
            f"the static argument `{name}` is left to its default;"
            f" `{static.site.definition.name}` counts passed arguments and raises `ValueError`",
            fix=misplaced_fix(f"pass the default of `{name}`", project, found),
            related=named_static_here(static),
            sites=(static.site,),
        )
