"""RMT201: Python needs the value of an argument that a checkpoint traces.

https://docs.jax.dev/en/latest/jep/11830-new-remat-checkpoint.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.sites.site import Site, sites_in
from remat_migrate.analysis.statics.self_offset import self_offset
from remat_migrate.analysis.statics.traced_needs import TracedNeed, traced_needs
from remat_migrate.rewrite import Refused
from remat_migrate.rule import Confidence, Example, Fails, Finding, Fix, Related, Rule, Safety

from .instance_wrapped import wrapped_instance

_TRACED = "TracerBoolConversionError|ConcretizationTypeError"
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
_USE = "value, gradient = jax.value_and_grad(loss)(jnp.ones(3))\n"


class TracedControlFlow(Rule):
    """
    ## What it does
    Finds checkpointed functions whose body needs the value of an argument (a branch, a loop count,
    a shape, a field of a layer) that is not static, where a call passes it.

    ## Why is this bad?
    Under `jax.checkpoint` every argument that is passed becomes a tracer, also a Python `bool` and
    outside of `jax.jit`: a branch on it raises a `TracerBoolConversionError`. An argument that is
    left to its default stays a Python value.

    ## Fix
    The first of these that keeps the meaning:

    1. The arguments can be passed by position and every call is known: they are named in
       `static_argnums`, and each call passes them by position.
    2. Otherwise the function keeps its signature and closes over them: an inner checkpointed
       function takes the other arguments.
    3. What is passed is an array, or a gradient is taken of it: nothing is changed, and the finding
       says what to write instead (`jax.lax.cond`, `jnp.where`).
    """

    code: ClassVar[str] = "RMT201"
    name: ClassVar[str] = "traced-control-flow"
    url: ClassVar[str] = "https://docs.jax.dev/en/latest/jep/11830-new-remat-checkpoint.html"

    wrong: ClassVar[list[Example]] = [
        Example(
            _BLOCK % ("", "@jax.checkpoint", "is_training="),
            _BLOCK
            % (
                "from functools import partial\n\n",
                "@partial(jax.checkpoint, static_argnums=(1,))",
                "",
            ),
            use=_USE,
            fails=Fails(_TRACED),
            holds="assert value == 6 and (gradient == 2).all()\n",
        ),
        Example(
            _FLAX % "",
            _FLAX % ", static_argnums=(2,)",
            use="import jax\nimport jax.numpy as jnp\n\n"
            "value = Net().apply({}, jnp.ones(3), False)\n",
            fails=Fails(_TRACED),
            holds="assert (value == 2).all()\n",
        ),
        # A branch on an array: nothing is changed.
        Example(
            "import jax\n"
            "import jax.numpy as jnp\n\n\n"
            "@jax.checkpoint\n"
            "def absolute(x):\n"
            "    return x if jnp.sum(x) > 0 else -x\n\n\n"
            "def loss(x):\n"
            "    return jnp.sum(absolute(jnp.sin(x)))\n",
            use=_USE,
            fails=Fails(_TRACED),
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(
            (_BLOCK % ("", "@jax.checkpoint", ""))
            .replace("is_training):", "is_training=True):")
            .replace("(x, True)", "(x)"),
            use=_USE,
            holds="assert value == 6 and (gradient == 2).all()\n",
        ),
        Example(
            _FLAX % ", static_argnums=(2,)",
            use="import jax.numpy as jnp\n\nvalue = Net().apply({}, jnp.ones(3), False)\n",
            holds="assert (value == 2).all()\n",
        ),
        # Equinox makes static what is no array.
        _BLOCK % ("import equinox as eqx\n", "@eqx.filter_checkpoint", ""),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each application that traces what Python needs."""
        for site in sites_in(project, module):
            found = [need for need in traced_needs(project, site) if not need.deliberate]
            # An instance that should be a class is RMT501: nothing is traced before that is fixed.
            if found and self_offset(project, site) is None and not wrapped_instance(project, site):
                yield self._found(site, found, project)

    def _found(self, site: Site, found: list[TracedNeed], project: Project) -> Finding:
        from remat_migrate.rewrite.making_static import make_static

        names = dict.fromkeys(f.need.parameter for f in found)
        text = " and ".join(f"`{name}`" for name in names)
        related = tuple(r for f in found for r in _related(f))
        fix: Fix | None = None
        reason = ""
        if all(f.evidence == "declared" for f in found):
            reason = (
                f"no call is seen: name {text} in `static_argnums`, and pass it by position; for an"
                " array use `jax.lax.cond` or `jnp.where`"
            )
        else:
            try:
                made = make_static(project, site, names)
                fix = Fix(made.title, Safety.SAFE, made.changes)
            except Refused as refused:
                reason = refused.reason
                if refused.module is not None and isinstance(refused.node, ast.expr | ast.arg):
                    span = refused.module.source.span(refused.node)
                    related = (*related, Related(refused.module.source, span, refused.label))
        return self.finding(
            site.module.source,
            site.span,
            f"Python needs the value of {text}, which {site.api} traces",
            confidence=_confidence(site, found),
            fix=fix or Fix(reason, Safety.MANUAL),
            related=related,
            reason=reason,
        )


def _confidence(site: Site, found: list[TracedNeed]) -> Confidence:
    if all(f.evidence == "declared" for f in found):
        return "low"
    return "high" if site.certain and any(f.sure for f in found) else "medium"


def _related(found: TracedNeed) -> Iterator[Related]:
    need, call = found.need, found.call
    message = f"Python needs `{need.parameter}`: {need.reason}"
    yield Related(need.module.source, need.module.span(need.node), message)
    if call is not None and found.shown not in (None, need.node):
        source = call.module.source
        if any(node is found.shown for node in ast.walk(call.node)):
            yield Related(source, call.module.span(found.shown), "passed here")
