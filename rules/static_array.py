"""RMT205: an array as a static argument.

https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.sites.site import sites_in
from remat_migrate.analysis.statics.passed_values import passed_kind
from remat_migrate.analysis.statics.static_options import deliberate, static_site
from remat_migrate.rule import Example, Finding, Fix, Rule, Safety, Severity

from .positional_fixes import named_here

_BLOCK = """\
from functools import partial

import jax
import jax.numpy as jnp

traced = []


@partial(jax.checkpoint, static_argnums=(1,))
def block(x, n):
    traced.append(n)
    return x * n


def step(x):
    return block(x, %s)
"""
_USE = "for _ in range(3):\n    step(jnp.ones(3))\n"


class StaticArray(Rule):
    """
    ## What it does
    Finds calls that pass an array for a static argument.

    ## Why is this bad?
    `jax.checkpoint` traces a function anew for each static argument that it has not seen. Two
    arrays are never the same, so that a new array means a new trace, and a compilation under
    `jax.jit`. Of a static array no gradient is taken.

    ## Fix
    None: pass it as an argument that is not static, or read it in the function from around it.
    """

    code: ClassVar[str] = "RMT205"
    name: ClassVar[str] = "static-array"
    url: ClassVar[str] = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"
    severity: ClassVar[Severity] = "warning"
    enabled: ClassVar[bool] = False

    wrong: ClassVar[list[Example]] = [
        Example(_BLOCK % "jnp.arange(3.0)", use=_USE, shows="assert len(traced) == 3\n"),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(_BLOCK % "3", use=_USE, holds="assert len(traced) == 1\n"),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each call that passes an array where an argument is static."""
        for owner in project.modules.values():
            for site in sites_in(project, owner):
                static = static_site(project, site)
                if static is None:
                    continue
                for call, arguments in static.bound:
                    if call.module is not module or deliberate([call]):
                        continue
                    for parameter in static.static:
                        pair = ((call, arguments),)
                        kind, shown = passed_kind(
                            project, static.target, parameter.parameter, None, pair
                        )
                        if kind == "array" and shown is not None:
                            reason = "pass it as an argument that is not static, or close over it"
                            yield self.finding(
                                module.source,
                                module.span(shown[1]),
                                f"an array is passed for the static argument `{parameter.name}`:"
                                " each new array is a new trace",
                                confidence="medium",
                                fix=Fix(reason, Safety.MANUAL),
                                related=named_here(static),
                                reason=reason,
                            )
