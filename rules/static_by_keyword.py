"""RMT202: a static argument is passed by keyword."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from remat_migrate.api import Example, Fails, Finding, Project, Rule, Safety, Severity
from remat_migrate.api.policies import uses_next_implementation
from remat_migrate.api.statics import Misplaced, deliberate, misplaced_calls

from .shared.example_uses import BLOCK, DOUBLED, GRADIENT, TRACED
from .shared.fixes import misplaced_fix, named_static_here

_block = partial(
    BLOCK.format, parameters="x, is_training", body="return 2 * x if is_training else x"
)
_FLAX = """\
import flax.linen as nn
from flax.linen import partitioning


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, double=False):
        return 2 * x if double else x


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return partitioning.remat(Block, static_argnums=(1,))()(x, %s)
"""


class StaticByKeyword(Rule):
    """## What it does
    Checks for calls of a checkpointed function that pass a static argument by keyword.

    ## Why is this bad?
    `static_argnums` of `jax.checkpoint` counts the arguments that are passed by position. A static
    argument that is passed by keyword is not among them, and JAX raises `ValueError`. With a
    negative index, JAX silently makes another argument static and traces this one. The next
    implementation of `jax.checkpoint` (`jax_remat3`) silently traces it.
    `flax.linen.partitioning.remat` drops keyword arguments, so the function sees the default.

    ## Fix
    Passes the static arguments, and any omitted defaults before them, by position. Under
    `flax.linen.partitioning.remat` the fix is unsafe: the function now receives the argument that
    was dropped, so values change.
    """

    code, name = "RMT202", "static-by-keyword"
    since = "0.3.16"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"

    wrong = [
        Example(
            _block(options="static_argnums=(1,)", arguments="x, is_training=True"),
            _block(options="static_argnums=(1,)", arguments="x, True"),
            use=GRADIENT,
            fails=Fails("ValueError: .*static_argnums"),
            holds=DOUBLED,
        ),
        Example(
            _block(options="static_argnums=-1", arguments="x, is_training=True"),
            _block(options="static_argnums=-1", arguments="x, True"),
            use=GRADIENT,
            fails=TRACED,
            holds=DOUBLED,
        ),
        Example(
            _FLAX % "double=True",
            _FLAX % "True",
            use="import jax\nimport jax.numpy as jnp\n\nvalue = Net().apply({}, jnp.ones(3))\n",
            shows="assert (value == 1).all()  # the keyword is dropped\n",
            holds="assert (value == 2).all()\n",
        ),
    ]
    right = [_block(options="prevent_cse=True", arguments="x, is_training=1")]

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Report each call that passes a static argument by keyword."""
        for found in misplaced_calls(project):
            if found.how == "keyword" and not deliberate([found.call]):
                yield self._found(found, project)

    def _found(self, found: Misplaced, project: Project) -> Finding:
        call, static = found.call, found.static
        fix, reason = misplaced_fix("pass the static arguments by position", project, found), ""
        if static.site.definition.static_calls == "keywords-ignored" and fix.changes:
            fix = replace(fix, safety=Safety.UNSAFE)
            reason = (
                "the function will receive the argument that is now dropped, so its results change"
            )
        message, severity = _message(found, project)
        return self.finding(
            *call.module.location(found.keyword or call.node.func),
            message,
            severity=severity,
            fix=fix,
            related=named_static_here(static),
            reason=reason,
            sites=(static.site,),
        )


def _message(found: Misplaced, project: Project) -> tuple[str, Severity]:
    api, name = found.static.site.definition, found.parameter.name
    head = f"the static argument `{name}` is passed by keyword"
    if api.static_calls == "keywords-ignored":
        return f"{head}; `{api.name}` drops it with a warning and uses the default", "warning"
    if uses_next_implementation(project):
        return f"{head}; under `jax_remat3` it is silently traced", "warning"
    if found.instead:
        return f"{head}; `{found.instead}` becomes static instead, and `{name}` is traced", "error"
    return f"{head}; `{api.name}` counts positions and raises `ValueError`", "error"
