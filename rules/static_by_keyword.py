"""RMT202: a static argument that is passed by keyword.

https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.policies.jax_remat3 import uses_next_implementation
from remat_migrate.analysis.statics.misplaced_arguments import Misplaced, misplaced_in
from remat_migrate.analysis.statics.static_options import deliberate
from remat_migrate.rule import Example, Fails, Finding, Rule, Safety, Severity

from .positional_fixes import by_position, named_here

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
_USE = "value, gradient = jax.value_and_grad(loss)(jnp.ones(3))\n"
_HOLDS = "assert value == 6 and (gradient == 2).all()\n"


class StaticByKeyword(Rule):
    """
    ## What it does
    Finds calls of a checkpointed function that pass a static argument by keyword.

    ## Why is this bad?
    `static_argnums` of `jax.checkpoint` counts the arguments that are passed by position. A static
    argument that is passed by keyword is not among them: a `ValueError`; with a negative index,
    another argument is made static in silence and this one is traced. The next implementation of
    checkpoints (`jax_remat3`) traces it in silence. `flax.linen.partitioning.remat` leaves out
    what is passed by keyword, so that the function sees the default.

    ## Fix
    The call passes the static arguments by position, and the defaults of what it left out before
    them. Under `flax.linen.partitioning.remat` values change, since the function gets what has been
    left out so far: there the fix is unsafe.
    """

    code: ClassVar[str] = "RMT202"
    name: ClassVar[str] = "static-by-keyword"
    since: ClassVar[str] = "0.3.16"
    url: ClassVar[str] = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"

    wrong: ClassVar[list[Example]] = [
        Example(
            _HEAD + _BLOCK % ("(1,)", "is_training=True"),
            _HEAD + _BLOCK % ("(1,)", "True"),
            use=_USE,
            fails=Fails("ValueError: .*static_argnums"),
            holds=_HOLDS,
        ),
        Example(
            _HEAD + _BLOCK % ("-1", "is_training=True"),
            _HEAD + _BLOCK % ("-1", "True"),
            use=_USE,
            fails=Fails("TracerBoolConversionError|ConcretizationTypeError"),
            holds=_HOLDS,
        ),
        Example(
            _FLAX % "double=True",
            _FLAX % "True",
            use="import jax\nimport jax.numpy as jnp\n\nvalue = Net().apply({}, jnp.ones(3))\n",
            shows="assert (value == 1).all()  # the keyword was left out\n",
            holds="assert (value == 2).all()\n",
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(_HEAD + _BLOCK % ("(1,)", "True"), use=_USE, holds=_HOLDS),
        _HEAD + _BLOCK.replace("static_argnums=%s", "prevent_cse=%s") % ("True", "is_training=1"),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each call that passes a static argument by keyword."""
        for found in misplaced_in(project, module):
            if found.how == "keyword" and not deliberate([found.call]):
                yield self._found(found, project)

    def _found(self, found: Misplaced, project: Project) -> Finding:
        call, static = found.call, found.static
        bound = next(pair for pair in static.bound if pair[0] is call)
        fix, reason = by_position(
            "pass the static arguments by position", project, static, [bound], found.last
        )
        if static.site.definition.static_calls == "keywords-ignored" and fix.changes:
            fix = replace(fix, safety=Safety.UNSAFE)
            reason = "what has been left out so far is passed then, and the values change with it"
        message, severity = _message(found, project)
        span = call.module.span(found.keyword or call.node.func)
        return self.finding(
            call.module.source,
            span,
            message,
            severity=severity,
            fix=fix,
            related=named_here(static),
            reason=reason,
            sites=(static.site,),
        )


def _message(found: Misplaced, project: Project) -> tuple[str, Severity]:
    api, name = found.static.site.definition, found.parameter.name
    head = f"the static argument `{name}` is passed by keyword: "
    if api.static_calls == "keywords-ignored":
        return head + f"{api.name} leaves it out, and the default is taken in silence", "warning"
    if uses_next_implementation(project):
        return head + "under `jax_remat3` it is traced in silence", "warning"
    if found.instead:
        return head + f"`{found.instead}` is made static in its place, and it is traced", "error"
    return head + f"{api.name} counts positions, so it is a ValueError", "error"
