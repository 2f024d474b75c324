"""RMT202: a static argument is passed by keyword."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from remat_migrate.api import Example, Fails, Finding, Project, Rule, Safety, Severity
from remat_migrate.api.policies import uses_next_implementation
from remat_migrate.api.statics import Misplaced, deliberate, misplaced_calls

from .shared.example_uses import DOUBLED, GRADIENT, TRACED
from .shared.fixes import named_static_here, positional_fix

_HEAD = """\
from functools import partial

import jax
import jax.numpy as jnp


"""
_BLOCK = """\
@partial(jax.checkpoint, static_argnums=%s)
def block(x, is_training):
    return 2 * x if is_training else x


def loss(x):
    return jnp.sum(block(x, %s))
"""
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
            _HEAD + _BLOCK % ("(1,)", "is_training=True"),
            _HEAD + _BLOCK % ("(1,)", "True"),
            use=GRADIENT,
            fails=Fails("ValueError: .*static_argnums"),
            holds=DOUBLED,
        ),
        Example(
            _HEAD + _BLOCK % ("-1", "is_training=True"),
            _HEAD + _BLOCK % ("-1", "True"),
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
    right = [
        _HEAD + _BLOCK.replace("static_argnums=%s", "prevent_cse=%s") % ("True", "is_training=1"),
    ]

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Report each call that passes a static argument by keyword."""
        for found in misplaced_calls(project):
            if found.how == "keyword" and not deliberate([found.call]):
                yield self._found(found, project)

    def _found(self, found: Misplaced, project: Project) -> Finding:
        call, static = found.call, found.static
        bound = next(pair for pair in static.bound if pair[0] is call)
        title, reason = "pass the static arguments by position", ""
        fix = positional_fix(title, project, static, [bound], found.last)
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
