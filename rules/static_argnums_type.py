"""RMT207: a `static_argnums` that is no index, or names no argument.

https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.names.expected_failures import expects_failure
from remat_migrate.analysis.policies.jax_remat3 import uses_next_implementation
from remat_migrate.analysis.sites.call_search import uses_of
from remat_migrate.analysis.sites.site import Option, Site, sites_of
from remat_migrate.analysis.statics.misplaced_arguments import misplaced
from remat_migrate.analysis.statics.static_options import (
    Indices,
    StaticParameter,
    deliberate,
    known_target,
    lost_indices,
    read_indices,
    static_site,
)
from remat_migrate.analysis.values.bind import positional_parameters
from remat_migrate.codemod.changes import Code, Replace
from remat_migrate.rule import Example, Fails, Finding, Fix, Related, Rule, Safety

from .positional_fixes import by_position

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
_FLAX = """\
import flax.linen as nn


class Block(nn.Module):
    def __call__(self, x, train):
        return 2 * x if train else x


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat(Block, static_argnums=%s)()(x, True)
"""
_USE = "value, gradient = jax.value_and_grad(loss)(jnp.ones(3))\n"
_HOLDS = "assert value == 6 and (gradient == 2).all()\n"
_TYPE = Fails("TypeError: .*(static_argnums|not iterable)")


class StaticArgnumsType(Rule):
    """
    ## What it does
    Finds a `static_argnums` that is a list, a range, a set, a bool or a number of NumPy; an index
    that the function has no argument for; a negative index where a call leaves out arguments that
    have a default; `-1` of `flax.linen.remat`.

    ## Why is this bad?
    `jax.checkpoint` takes an int or a tuple of ints: anything else is a `TypeError`, an index that
    is too large a `ValueError`. A negative index counts from the last argument that is passed:
    where a default is left out, it makes another argument static, in silence. `flax.linen.remat`
    shifts the indices, so that `-1` names none of the arguments. `flax.linen.partitioning.remat`
    takes any collection of indices, but no int.

    ## Fix
    Literal indices are written as a tuple, in their order. Calls that leave out defaults pass them.
    """

    code: ClassVar[str] = "RMT207"
    name: ClassVar[str] = "static-argnums-type"
    since: ClassVar[str] = "0.3.16"
    url: ClassVar[str] = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"

    wrong: ClassVar[list[Example]] = [
        Example(
            _BLOCK % ("[1, 2]", "2, True"),
            _BLOCK % ("(1, 2)", "2, True"),
            use=_USE,
            fails=_TYPE,
            holds=_HOLDS,
        ),
        Example(
            _BLOCK % ("range(1, 3)", "2, True"),
            _BLOCK % ("(1, 2)", "2, True"),
            use=_USE,
            fails=_TYPE,
            holds=_HOLDS,
        ),
        Example(
            _BLOCK % ("(1, 3)", "2, True"),
            use=_USE,
            fails=Fails("ValueError: .*static_argnums"),
        ),
        Example(
            _SCALED % "3.0",
            _SCALED % "3.0, False",
            use=_USE,
            shows="assert value == 9 and static == [True]  # `scale` is, `double` is not\n",
            holds="assert value == 9 and (gradient == 3).all() and static == [False]\n",
        ),
        Example(
            _FLAX % "-1",
            _FLAX % "(2,)",
            use="import jax.numpy as jnp\n\nvalue = Net().apply({}, jnp.ones(3))\n",
            fails=Fails("TracerBoolConversionError|ConcretizationTypeError"),
            holds="assert (value == 2).all()\n",
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(_BLOCK % ("(1, 2)", "2, True"), use=_USE, holds=_HOLDS),
        Example(_BLOCK % ("(1, -1)", "2, True"), use=_USE, holds=_HOLDS),
        "import jax\n\nf = jax.jit(lambda x, n: x * n, static_argnums=[1])\n",
        "from flax.linen import partitioning\n\n\n"
        "def wrap(block):\n    return partitioning.remat(block, static_argnums=[1, 2])\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each `static_argnums` that is written in the module."""
        seen: set[int] = set()
        for site in sites_of(project):
            option = site.arguments.get("static_argnums")
            api = site.definition
            if option is None or api.static_option is None or api.static_calls == "unknown":
                continue
            indices = read_indices(project, option)
            if indices.module is not module or id(indices.node) in seen:
                continue
            found = self._type(site, option, indices, project) or self._index(
                site, indices, project
            )
            if found is not None:
                seen.add(id(indices.node))
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
        fix = Fix(f"write {wanted}", Safety.MANUAL)
        if indices.values is not None and indices.node is option.value:
            text = repr(indices.values)
            change = Replace(module, indices.node, Code(text))
            fix = Fix(f"write `{text}`", Safety.SAFE, (change,))
        return self.finding(
            module.source,
            module.span(indices.node),
            f"`static_argnums` of {api.name} must be {wanted}: a {indices.type} is a TypeError",
            fix=fix,
            reason="" if fix.changes else fix.title,
        )

    def _index(self, site: Site, indices: Indices, project: Project) -> Finding | None:
        """An index that names no argument, or another than it seems to."""
        api, module, values = site.definition, indices.module, indices.values
        target = known_target(project, site)
        if target is None or values is None or site.application is None:
            return None
        node = target.function.node
        if node.args.vararg is not None or expects_failure(module, indices.node):
            return None
        calls = uses_of(project, site).calls
        if calls and deliberate(calls):
            return None
        place = module.span(indices.node)
        count = len(positional_parameters(node))
        first = 1 if api.counting == "method-without-self" else 0
        last = count - target.skip * (api.counting == "function") - first - 1
        wide = [i for i in values if i > last or (i < 0 and i < -(last + 1))]
        if api.static_calls == "by-position" and api.counting != "method-without-self" and wide:
            if min(wide) < 0 and api.negative_shift:
                return None
            reason = f"the last argument that a call can pass has index {last}"
            return self.finding(
                module.source,
                place,
                f"`static_argnums` names index {wide[0]}, which {site.target or 'it'} has no"
                " argument for: a ValueError",
                confidence="high" if site.certain else "medium",
                fix=Fix(reason, Safety.MANUAL),
                reason=reason,
                related=(self._defined(target.function.module, node.args.args),)
                if node.args.args
                else (),
            )
        if lost_indices(api, values):
            return self._lost(site, indices, project)
        return self._negative(site, indices, project)

    def _lost(self, site: Site, indices: Indices, project: Project) -> Finding:
        """`-1` of Flax."""
        api, module, option = site.definition, indices.module, site.arguments["static_argnums"]
        static = static_site(project, site)
        assert static is not None
        assert indices.values is not None
        positional = positional_parameters(static.function)
        last = len(positional) - 1
        reason = f"name it by its index from the first, `self` being 0: {last} is the last"
        fix = Fix(reason, Safety.MANUAL)
        uses = uses_of(project, site)
        seen = len(static.bound) == len(uses.calls) > 0 and not uses.escapes
        here = option.value is indices.node and option.call is site.application
        if seen and here and indices.values == (-1,) and api.counting == "method":
            wanted = (StaticParameter(last, last, positional[last]),)
            called, _ = by_position(
                reason, project, replace(static, static=wanted), static.bound, last
            )
            if called.safety is Safety.SAFE:
                change = Replace(module, indices.node, Code(f"({last},)"))
                fix = Fix(f"write `({last},)`", Safety.SAFE, (change, *called.changes))
                reason = ""
        return self.finding(
            module.source,
            module.span(indices.node),
            f"index {lost_indices(api, indices.values)[0]} of {api.name} names none of the"
            " arguments: it shifts indices, and does not make the last argument static",
            severity="warning",
            fix=fix,
            reason=reason,
        )

    def _negative(self, site: Site, indices: Indices, project: Project) -> Finding | None:
        """A negative index, and calls that leave out what has a default."""
        found = [
            m
            for m in misplaced(project, site)
            if m.how == "omitted" and m.parameter.index < 0 and m.instead
        ]
        if not found:
            return None
        first = found[0]
        if deliberate(m.call for m in found):
            return None
        pairs = [p for p in first.static.bound if any(p[0] is m.call for m in found)]
        fix, reason = by_position(
            "pass the defaults that are left out", project, first.static, pairs, first.last
        )
        return self.finding(
            indices.module.source,
            indices.module.span(indices.node),
            f"index {first.parameter.index} counts what a call passes: where the default of"
            f" `{first.parameter.name}` is left out, `{first.instead}` is made static instead",
            severity="warning",
            fix=fix,
            reason=reason,
            related=tuple(
                Related(m.call.module.source, m.call.module.span(m.call.node.func), "called here")
                for m in found
            ),
        )

    @staticmethod
    def _defined(module: Module, parameters: list[ast.arg]) -> Related:
        return Related(module.source, module.span(parameters[-1]), "the last argument")
