"""RMT204: the result of a traced JAX operation is needed at trace time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from remat_migrate.api import Example, Finding, Fix, Project, Related, Rule, Safety, Site
from remat_migrate.api.changes import Refused
from remat_migrate.api.code import expects_failure
from remat_migrate.api.sites import sites_of, uses_of
from remat_migrate.api.statics import Need, deliberate, result_obstacle, traced_results

from .shared.example_uses import BLOCK, DOUBLED, GRADIENT, TRACED

_block = partial(
    BLOCK.format, options="static_argnums=(1,)", parameters="x, order", arguments="x, 2"
)


class TracedCompileTimeValue(Rule):
    """## What it does
    Checks for checkpointed functions in which Python needs the result of a `jax.numpy`, `jax.lax`,
    `jax.nn`, or `jax.random` operation at trace time, although nothing traced goes in.

    ## Why is this bad?
    Inside a checkpointed function the result of every such operation is a tracer, even outside
    `jax.jit`, and even for operations on Python numbers and shapes. `int()` of it or a branch on it
    raises an exception.

    ## Fix
    Computes the operation under `jax.ensure_compile_time_eval()`. Where `numpy` works as well, it
    is simpler. If what goes in may be traced, changes nothing.
    """

    code, name = "RMT204", "traced-compile-time-value"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.ensure_compile_time_eval.html"

    wrong = [
        Example(
            _block(body="if jnp.greater(order, 1):\n        return order * x\n    return x"),
            _block(
                body="with jax.ensure_compile_time_eval():\n"
                "        condition = jnp.greater(order, 1)\n"
                "    if condition:\n        return order * x\n    return x"
            ),
            use=GRADIENT,
            fails=TRACED,
            holds=DOUBLED,
        ),
    ]
    right = [
        Example(
            _block(body="return order * x if order > 1 else x"),
            use=GRADIENT,
            holds=DOUBLED,
        ),
        Example(
            _block(body="return jnp.where(jnp.greater(order, 1), order * x, x)"),
            use=GRADIENT,
            holds=DOUBLED,
        ),
    ]

    def check_project(self, project: Project) -> Iterator[Finding]:
        """Report each expression that needs such a result."""
        for found in _results(project).values():
            yield self._found(found, project)

    def _found(self, found: _Found, project: Project) -> Finding:
        from remat_migrate.api.rewrites import hoist

        need = found.need
        try:
            if found.may_be_traced:
                raise Refused(result_obstacle(need).reason)
            changes = tuple(hoist(project, [need]))
            fix = Fix("compute it under `jax.ensure_compile_time_eval`", Safety.SAFE, changes)
        except Refused as refused:
            fix = Fix.manual(refused.reason)
        return self.finding(
            *need.module.location(need.node),
            "the checkpoint traces a JAX operation whose result is needed at trace time:"
            f" {need.reason}",
            fix=fix,
            sites=tuple(found.sites),
            related=tuple(
                Related(*module.location(node), "its result is a tracer")
                for module, node in need.operations
                if node is not need.node
            ),
        )


@dataclass(slots=True)
class _Found:
    """A needed result, and the sites that trace it."""

    need: Need
    may_be_traced: bool = False
    sites: list[Site] = field(default_factory=list)


def _results(project: Project) -> dict[ast.expr, _Found]:
    """Return the needed results of all sites, by their expressions."""
    found: dict[ast.expr, _Found] = {}
    for site in sites_of(project):
        results = [r for r in traced_results(project, site) if r[0].need.module.is_own]
        # Searching for calls is expensive, so needs come first.
        if not results or _is_deliberate(project, site):
            continue
        for result, may_be_traced in results:
            need = result.need
            known = found.setdefault(need.node, _Found(need))
            known.need = replace(known.need, traced=known.need.traced | need.traced)
            known.may_be_traced |= may_be_traced
            known.sites.append(site)
    return found


def _is_deliberate(project: Project, site: Site) -> bool:
    """Return whether a test expects the calls of a site to fail."""
    calls = uses_of(project, site).calls
    return expects_failure(site.module, site.reference) or bool(calls and deliberate(calls))
