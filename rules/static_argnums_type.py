"""RMT207: `static_argnums` has the wrong type or names no argument."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from remat_migrate.api import (
    Example,
    Fails,
    Finding,
    Fix,
    Module,
    Project,
    Related,
    Rule,
    Safety,
    Site,
)
from remat_migrate.api.changes import Code, Replace
from remat_migrate.api.code import expects_failure, positional_parameters
from remat_migrate.api.policies import uses_next_implementation
from remat_migrate.api.sites import Option, sites_of, uses_of
from remat_migrate.api.statics import (
    Indices,
    StaticParameter,
    deliberate,
    known_targets,
    lost_indices,
    misplaced,
    read_indices,
    static_site,
)

from .shared.example_uses import DOUBLED, GRADIENT
from .shared.fixes import positional_fix

_BLOCK = """\
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.checkpoint, static_argnums=%s)
def block(x, order, double=False):
    return order * x if double else x


def loss(x):
    return jnp.sum(block(x, %s))
"""
_SCALED = """\
from functools import partial

import jax
import jax.numpy as jnp

static = []


@partial(jax.checkpoint, static_argnums=-1)
def block(x, scale, double=False):
    static.append(isinstance(scale, float))
    return 2 * scale * x if double else scale * x


def loss(x):
    return jnp.sum(block(x, %s))
"""

_TYPE = Fails("TypeError: .*(static_argnums|not iterable)")


class StaticArgnumsType(Rule):
    """## What it does
    Checks for a `static_argnums` that is a list, a range, a set, a bool, or a NumPy scalar; an
    index for which the function has no argument; a negative index where a call omits arguments with
    a default; and `-1` of `flax.linen.remat`.

    ## Why is this bad?
    `jax.checkpoint` accepts an int or a tuple of ints. Anything else raises `TypeError`, and an
    index that is too large raises `ValueError`. A negative index counts from the last argument that
    is passed: if a call omits a default, another argument silently becomes static.
    `flax.linen.remat` shifts indices, so `-1` names none of the arguments.
    `flax.linen.partitioning.remat` accepts any collection of indices, but no int.

    ## Fix
    Writes literal indices as a tuple, in the same order. Calls that omit defaults pass them.
    """

    code, name = "RMT207", "static-argnums-type"
    since = "0.3.16"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"

    wrong = [
        Example(
            _BLOCK % ("[1, 2]", "2, True"),
            _BLOCK % ("(1, 2)", "2, True"),
            use=GRADIENT,
            fails=_TYPE,
            holds=DOUBLED,
        ),
        Example(
            _BLOCK % ("(1, 3)", "2, True"),
            use=GRADIENT,
            fails=Fails("ValueError: .*static_argnums"),
        ),
        Example(
            _SCALED % "3.0",
            _SCALED % "3.0, False",
            use=GRADIENT,
            shows="assert value == 9 and static == [True]  # `scale` is, `double` is not\n",
            holds="assert value == 9 and (gradient == 3).all() and static == [False]\n",
        ),
    ]
    right = [
        Example(_BLOCK % ("(1, -1)", "2, True"), use=GRADIENT, holds=DOUBLED),
        "import jax\n\nf = jax.jit(lambda x, n: x * n, static_argnums=[1])\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each `static_argnums` in the module that is wrong."""
        seen: set[ast.expr] = set()
        for site, option, indices in project.once(_by_owner)[module]:
            if indices.node in seen:
                continue
            found = self._type(site, option, indices, project) or self._index(
                site, indices, project
            )
            if found is not None:
                seen.add(indices.node)
                yield found

    def _type(
        self, site: Site, option: Option, indices: Indices, project: Project
    ) -> Finding | None:
        api, module = site.definition, indices.module
        if not indices.type or indices.type in api.static_indices:
            return None
        if uses_next_implementation(project) or expects_failure(module, indices.node):
            return None
        wanted = "an int or a tuple of ints" if "int" in api.static_indices else "a tuple of ints"
        fix = Fix.manual(f"write {wanted}")
        if indices.values is not None and indices.node is option.value:
            text = repr(indices.values)
            change = Replace(module, indices.node, Code(text))
            fix = Fix(f"write `{text}`", Safety.SAFE, (change,))
        message = (
            f"`static_argnums` of `{api.name}` must be {wanted}; a {indices.type} raises"
            " `TypeError`"
        )
        return self.finding(*module.location(indices.node), message, fix=fix)

    def _index(self, site: Site, indices: Indices, project: Project) -> Finding | None:
        """Return a finding for an index that names no argument, or an unexpected one."""
        api, module, values = site.definition, indices.module, indices.values
        targets = known_targets(project, site)
        if not targets or values is None or site.application is None:
            return None
        target = targets[0]
        node = target.function.node
        if node.args.vararg is not None or expects_failure(module, indices.node):
            return None
        calls = uses_of(project, site).calls
        if calls and deliberate(calls):
            return None
        count = len(positional_parameters(node))
        first = 1 if api.counting == "method-without-self" else 0
        last = count - target.skip * (api.counting == "function") - first - 1
        outside = [i for i in values if i > last or (i < 0 and i < -(last + 1))]
        if api.static_calls == "by-position" and api.counting != "method-without-self" and outside:
            if min(outside) < 0 and api.negative_shift:
                return None
            definition = target.function.module
            return self.finding(
                *module.location(indices.node),
                f"`static_argnums` contains {outside[0]}, but {site.target or 'the function'} has"
                " no such argument and the call raises `ValueError`",
                confidence="high" if site.certain else "medium",
                fix=Fix.manual(f"the index of the last argument is {last}"),
                related=tuple(
                    Related(*definition.location(parameter), "the last argument")
                    for parameter in node.args.args[-1:]
                ),
            )
        if lost_indices(api, values):
            return self._lost(site, indices, project)
        return self._negative(site, indices, project)

    def _lost(self, site: Site, indices: Indices, project: Project) -> Finding:
        """Return a finding for `-1` of Flax."""
        api, module, option = site.definition, indices.module, site.arguments["static_argnums"]
        static = static_site(project, site)
        assert static is not None
        assert indices.values is not None
        positional = positional_parameters(static.function)
        last = len(positional) - 1
        advice = f"use a non-negative index, counting `self` as 0; the last argument is {last}"
        fix = Fix.manual(advice)
        here = option.value is indices.node and option.call is site.application
        if here and indices.values == (-1,) and api.counting == "method":
            if static.sees_all_calls:
                wanted = replace(static, static=(StaticParameter(last, last, positional[last]),))
                calls = positional_fix(advice, project, wanted, static.bound, last)
                if calls.safety is Safety.SAFE:
                    change = Replace(module, indices.node, Code(f"({last},)"))
                    fix = Fix(f"write `({last},)`", Safety.SAFE, (change, *calls.changes))
        return self.finding(
            *module.location(indices.node),
            f"index {lost_indices(api, indices.values)[0]} of `{api.name}` names none of the"
            " arguments: Flax shifts indices, so the last argument is not static",
            severity="warning",
            fix=fix,
        )

    def _negative(self, site: Site, indices: Indices, project: Project) -> Finding | None:
        """Return a finding for a negative index with calls that omit a default."""
        found = [
            m
            for m in misplaced(project, site)
            if m.how == "omitted" and m.parameter.index < 0 and m.instead
        ]
        if not found or deliberate(m.call for m in found):
            return None
        first = found[0]
        pairs = [p for p in first.static.bound if any(p[0] is m.call for m in found)]
        return self.finding(
            *indices.module.location(indices.node),
            f"index {first.parameter.index} counts the arguments that a call passes: where"
            f" `{first.parameter.name}` is omitted, `{first.instead}` is made static instead",
            severity="warning",
            fix=positional_fix(
                "pass the omitted defaults", project, first.static, pairs, first.last
            ),
            related=tuple(
                Related(*m.call.module.location(m.call.node.func), "called here") for m in found
            ),
        )


def _by_owner(project: Project) -> defaultdict[Module, list[tuple[Site, Option, Indices]]]:
    """Return the options `static_argnums` of sites, by the module that has the indices."""
    found: defaultdict[Module, list[tuple[Site, Option, Indices]]] = defaultdict(list)
    for site in sites_of(project):
        option, api = site.arguments.get("static_argnums"), site.definition
        if option is None or api.static_option is None or api.static_calls == "unknown":
            continue
        indices = read_indices(project, option)
        found[indices.module].append((site, option, indices))
    return found
