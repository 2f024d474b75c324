"""RMT205: an array is passed for a static argument."""

from __future__ import annotations

from collections.abc import Iterator

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.sites.site import sites_in
from remat_migrate.analysis.sites.uses import Call
from remat_migrate.analysis.statics.arguments import Argument
from remat_migrate.analysis.statics.static_options import StaticSite, deliberate, static_site
from remat_migrate.analysis.values.bind import Arguments
from remat_migrate.rule import Example, Finding, Fix, Rule

from .shared.fixes import named_static_here

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
    """## What it does
    Checks for calls that pass an array for a static argument.

    ## Why is this bad?
    `jax.checkpoint` traces a function again for each new static argument. No two arrays are the
    same, so each new array means a new trace and, under `jax.jit`, a new compilation. Static arrays
    are not differentiated.

    ## Fix
    Not fixed automatically. Pass the array as a non-static argument, or close over it.
    """

    code, name = "RMT205", "static-array"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"
    severity = "warning"
    enabled = False

    wrong = [
        Example(_BLOCK % "jnp.arange(3.0)", use=_USE, shows="assert len(traced) == 3\n"),
    ]
    right = [
        Example(_BLOCK % "3", use=_USE, holds="assert len(traced) == 1\n"),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each array that a call passes for a static argument."""
        for owner in project.modules.values():
            for site in sites_in(project, owner):
                static = static_site(project, site)
                if static is None:
                    continue
                for call, arguments in static.bound:
                    if call.module is module and not deliberate([call]):
                        yield from self._arrays(project, static, (call, arguments))

    def _arrays(
        self, project: Project, static: StaticSite, pair: tuple[Call, Arguments]
    ) -> Iterator[Finding]:
        for parameter in static.static:
            shown = Argument(project, static.target, parameter.parameter, (pair,)).first_array
            if shown is not None:
                yield self.finding(
                    *pair[0].module.location(shown[1]),
                    f"an array is passed for the static argument `{parameter.name}`; each new array"
                    " is traced again",
                    confidence="medium",
                    fix=Fix.manual("pass it as a non-static argument, or close over it"),
                    related=named_static_here(static),
                )
