"""RMT201: an argument is traced, but its value is needed at trace time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from remat_migrate.api import (
    Confidence,
    Example,
    Finding,
    Fix,
    Module,
    Project,
    Related,
    Rule,
    Safety,
    Site,
)
from remat_migrate.api.sites import sites_in, wrapped_instance
from remat_migrate.api.statics import TracedNeed, self_offset, traced_needs, wrong_wrapper

from .shared.example_uses import DOUBLED, GRADIENT, TRACED
from .shared.fixes import migration_fix

_BLOCK = """\
%simport jax
import jax.numpy as jnp


%s
def block(x, is_training):
    if is_training:
        return 2 * x
    return x


def loss(x):
    return jnp.sum(block(x, %sTrue))
"""
_FLAX = """\
import flax.linen as nn


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, deterministic: bool):
        return x if deterministic else 2 * x


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, deterministic: bool):
        return nn.remat(Block%s)(name="block")(x, deterministic)
"""


class TracedControlFlow(Rule):
    """## What it does
    Checks for checkpointed functions that need the value of a non-static argument at trace time,
    for a branch, a loop count, a shape, or a field of a layer, where a call passes that argument.

    ## Why is this bad?
    `jax.checkpoint` turns every argument that is passed into a tracer, even a Python `bool`, and
    even outside `jax.jit`. A branch on it raises `TracerBoolConversionError`. An argument that is
    left to its default stays a Python value.

    ## Fix
    Applies the first of these that keeps the behavior:

    1. If every call is known and can pass the arguments by position, marks them static with
       `static_argnums` and updates the calls.
    2. Otherwise keeps the signature and closes over the arguments: an inner checkpointed function
       takes the other arguments.
    3. If an array is passed, or the argument is differentiated, changes nothing. The finding
       suggests an alternative, such as `jax.lax.cond` or `jnp.where`.
    """

    code, name = "RMT201", "traced-control-flow"
    url = "https://docs.jax.dev/en/latest/jep/11830-new-remat-checkpoint.html"

    wrong = [
        Example(
            _BLOCK % ("", "@jax.checkpoint", "is_training="),
            _BLOCK
            % (
                "from functools import partial\n\n",
                "@partial(jax.checkpoint, static_argnums=(1,))",
                "",
            ),
            use=GRADIENT,
            fails=TRACED,
            holds=DOUBLED,
        ),
        Example(
            _FLAX % "",
            _FLAX % ", static_argnums=(2,)",
            use="import jax\nimport jax.numpy as jnp\n\n"
            "value = Net().apply({}, jnp.ones(3), False)\n",
            fails=TRACED,
            holds="assert (value == 2).all()\n",
        ),
        # Branches on an array: not fixed.
        Example(
            "import jax\n"
            "import jax.numpy as jnp\n\n\n"
            "@jax.checkpoint\n"
            "def absolute(x):\n"
            "    return x if jnp.sum(x) > 0 else -x\n\n\n"
            "def loss(x):\n"
            "    return jnp.sum(absolute(jnp.sin(x)))\n",
            use=GRADIENT,
            fails=TRACED,
        ),
    ]
    right = [
        Example(
            (_BLOCK % ("", "@jax.checkpoint", ""))
            .replace("is_training):", "is_training=True):")
            .replace("(x, True)", "(x)"),
            use=GRADIENT,
            holds=DOUBLED,
        ),
        # Equinox treats non-array arguments as static.
        _BLOCK % ("import equinox as eqx\n", "@eqx.filter_checkpoint", ""),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each site that traces arguments that must be concrete."""
        for site in sites_in(project, module):
            found = [need for need in traced_needs(project, site) if not need.deliberate]
            # Nothing is traced before what RMT501, RMT502, and RMT503 report is fixed.
            first = (self_offset, wrapped_instance, wrong_wrapper)
            if found and not any(reported(project, site) for reported in first):
                yield self._found(site, found, project)

    def _found(self, site: Site, found: list[TracedNeed], project: Project) -> Finding:
        from remat_migrate.api.rewrites import make_static

        names = dict.fromkeys(f.need.parameter for f in found)
        text = " and ".join(f"`{name}`" for name in names)
        related = tuple(r for f in found for r in _related(f))
        reason = ""
        if all(f.evidence == "declared" for f in found):
            fix = Fix.manual(
                f"no call is visible: name {text} in `static_argnums` and pass it by position; for"
                " an array use `jax.lax.cond` or `jnp.where`"
            )
        else:
            fix, more, reason = migration_fix(partial(make_static, project, site, names))
            if fix.safety is Safety.MANUAL:
                related += more
        return self.finding(
            site.module.source,
            site.span,
            f"`{site.api}` traces {text}, but the value is needed at trace time",
            confidence=_confidence(site, found),
            fix=fix,
            related=related,
            reason=reason,
        )


def _confidence(site: Site, found: list[TracedNeed]) -> Confidence:
    if all(f.evidence == "declared" for f in found):
        return "low"
    return "high" if site.certain and any(f.sure for f in found) else "medium"


def _related(found: TracedNeed) -> Iterator[Related]:
    need, call = found.need, found.call
    message = f"the value of `{need.parameter}` is needed here: {need.reason}"
    yield Related(*need.module.location(need.node), message)
    if call is not None and found.shown not in (None, need.node):
        if any(node is found.shown for node in ast.walk(call.node)):
            yield Related(*call.module.location(found.shown), "passed here")
