"""RMT204: Python needs the result of a `jax.numpy` operation in a checkpointed function.

https://docs.jax.dev/en/latest/_autosummary/jax.ensure_compile_time_eval.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar
from weakref import WeakKeyDictionary

from remat_migrate.analysis import Module, Project, Site
from remat_migrate.analysis.names.expected_failures import expects_failure
from remat_migrate.analysis.needs.need import Need
from remat_migrate.analysis.sites.call_search import uses_of
from remat_migrate.analysis.sites.site import sites_of
from remat_migrate.analysis.statics.static_options import deliberate
from remat_migrate.analysis.statics.traced_needs import needs_of_static
from remat_migrate.rewrite import Refused
from remat_migrate.rule import Example, Fails, Finding, Fix, Related, Rule, Safety

_BEFORE = """\
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.checkpoint, static_argnums=(1,))
def block(x, order):
%s


def loss(x):
    return jnp.sum(block(x, 2))
"""
_USE = "value, gradient = jax.value_and_grad(loss)(jnp.ones(3))\n"
_HOLDS = "assert value == 6 and (gradient == 2).all()\n"


class TracedCompileTimeValue(Rule):
    """
    ## What it does
    Finds places in a checkpointed function where Python needs the result of a `jax.numpy`
    operation on static values.

    ## Why is this bad?
    Inside a checkpointed function the result of every `jax.numpy` operation is a tracer, also
    outside of `jax.jit`, and also of operations on Python numbers: a branch on it raises a
    `TracerBoolConversionError`.

    ## Fix
    The operation is computed under `jax.ensure_compile_time_eval()`. Where `numpy` will do, that is
    simpler.
    """

    code: ClassVar[str] = "RMT204"
    name: ClassVar[str] = "traced-compile-time-value"
    url: ClassVar[str] = (
        "https://docs.jax.dev/en/latest/_autosummary/jax.ensure_compile_time_eval.html"
    )

    wrong: ClassVar[list[Example]] = [
        Example(
            _BEFORE % "    if jnp.greater(order, 1):\n        return order * x\n    return x",
            _BEFORE
            % (
                "    with jax.ensure_compile_time_eval():\n"
                "        condition = jnp.greater(order, 1)\n"
                "    if condition:\n        return order * x\n    return x"
            ),
            use=_USE,
            fails=Fails("TracerBoolConversionError|ConcretizationTypeError"),
            holds=_HOLDS,
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(
            _BEFORE % "    if order > 1:\n        return order * x\n    return x",
            use=_USE,
            holds=_HOLDS,
        ),
        Example(
            _BEFORE % "    return jnp.where(jnp.greater(order, 1), order * x, x)",
            use=_USE,
            holds=_HOLDS,
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each place that needs such a result."""
        if project not in _FOUND:
            _FOUND[project] = _by_owner(project)
        for need, sites in _FOUND[project].get(module, {}).values():
            yield self._found(need, sites, project)

    def _found(self, need: Need, sites: tuple[Site, ...], project: Project) -> Finding:
        from remat_migrate.rewrite.compile_time import hoist

        reason = ""
        try:
            edits = tuple(hoist(project, [need]))
            fix = Fix("compute it under `jax.ensure_compile_time_eval`", Safety.SAFE, edits)
        except Refused as refused:
            reason = refused.reason
            fix = Fix(reason, Safety.MANUAL)
        source = need.module.source
        return self.finding(
            source,
            source.span(need.node),
            f"Python needs this ({need.reason}), and a checkpoint traces the `jax.numpy` operation"
            " in it",
            fix=fix,
            reason=reason,
            sites=sites,
            related=tuple(
                Related(module.source, module.span(node), "its result is a tracer")
                for module, node in need.operations
                if node is not need.node
            ),
        )


_Owned = dict[Module, dict[ast.expr, tuple[Need, tuple[Site, ...]]]]

# Found in the sites of all modules: once for the project, not for each of its modules.
_FOUND: WeakKeyDictionary[Project, _Owned] = WeakKeyDictionary()


def _by_owner(project: Project) -> _Owned:
    owned: _Owned = {}
    looked_at = set(project.modules.values())
    for site in sites_of(project):
        needs = [need for _, need in needs_of_static(project, site) if need.module.editable]
        # Calls are searched for only where there is a need.
        if not needs or _is_deliberate(project, site):
            continue
        for need in needs:
            # Files that only hold functions for others belong to the checkpoint's.
            owner = need.module if need.module in looked_at else site.module
            found = owned.setdefault(owner, {})
            known, sites = found.get(need.node, (need, ()))
            better = known if known.traced <= need.traced else need
            found[need.node] = better, (*sites, site)
    return owned


def _is_deliberate(project: Project, site: Site) -> bool:
    """Whether a test expects the site's calls to fail."""
    calls = uses_of(project, site).calls
    return expects_failure(site.module, site.reference) or bool(calls and deliberate(calls))
