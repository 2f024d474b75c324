"""RMT203: a static argument that is left to its default.

https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.policies.jax_remat3 import uses_next_implementation
from remat_migrate.analysis.statics.misplaced_arguments import Misplaced, misplaced_in
from remat_migrate.analysis.statics.static_options import deliberate
from remat_migrate.rule import Example, Fails, Finding, Rule

from .positional_fixes import by_position, named_here

_BLOCK = """\
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.checkpoint, static_argnums=(2,))
def block(x, scale=1.0, is_training=True):
    return scale * x if is_training else x


def loss(x):
    return jnp.sum(block(%s))
"""
_FLAX = """\
import flax.linen as nn


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = False):
        return 2 * x if train else x


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat(Block, static_argnums=(2,))()(%s)
"""
_USE = "value, gradient = jax.value_and_grad(loss)(jnp.ones(3))\n"
_FLAX_USE = "import jax\nimport jax.numpy as jnp\n\nvalue = Net().apply({}, jnp.ones(3))\n"


class StaticOmitted(Rule):
    """
    ## What it does
    Finds calls of a checkpointed function that leave a static argument to its default.

    ## Why is this bad?
    `static_argnums` of `jax.checkpoint` counts the arguments that are passed. One that is left to
    its default is not among them, and JAX raises a `ValueError`. The next implementation of
    checkpoints (`jax_remat3`) allows it.

    ## Fix
    The call passes the default by position.
    """

    code: ClassVar[str] = "RMT203"
    name: ClassVar[str] = "static-omitted"
    since: ClassVar[str] = "0.3.16"
    url: ClassVar[str] = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"

    wrong: ClassVar[list[Example]] = [
        Example(
            _BLOCK % "x",
            _BLOCK % "x, 1.0, True",
            use=_USE,
            fails=Fails("ValueError: .*static_argnums"),
            holds="assert value == 3 and (gradient == 1).all()\n",
        ),
        Example(
            _FLAX % "x",
            _FLAX % "x, False",
            use=_FLAX_USE,
            fails=Fails("ValueError: .*static_argnums"),
            holds="assert (value == 1).all()\n",
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(
            _BLOCK % "x, 2.0, True",
            use=_USE,
            holds="assert value == 6 and (gradient == 2).all()\n",
        ),
        # Without `static_argnums` a default stays a value of Python.
        Example(
            (_FLAX % "x").replace("Block, static_argnums=(2,)", "Block"),
            use=_FLAX_USE,
            holds="assert (value == 1).all()\n",
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each call that leaves a static argument out."""
        for found in misplaced_in(project, module):
            # What a negative index names instead is for RMT207.
            if found.how == "omitted" and found.parameter.index >= 0:
                if not deliberate([found.call]) and not uses_next_implementation(project):
                    yield self._found(found, project)

    def _found(self, found: Misplaced, project: Project) -> Finding:
        call, static = found.call, found.static
        bound = next(pair for pair in static.bound if pair[0] is call)
        fix, reason = by_position(
            f"pass the default of `{found.parameter.name}`", project, static, [bound], found.last
        )
        return self.finding(
            call.module.source,
            call.module.span(call.node.func),
            f"the static argument `{found.parameter.name}` is left to its default:"
            f" {static.site.definition.name} counts what is passed, so it is a ValueError",
            fix=fix,
            related=named_here(static),
            reason=reason,
            sites=(static.site,),
        )
