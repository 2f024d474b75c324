"""RMT207: `static_argnums` has the wrong type or names no argument."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

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
from remat_migrate.api.sites import Option, options_in, uses_of
from remat_migrate.api.statics import (
    Indices,
    deliberate,
    known_targets,
    lost_indices,
    misplaced,
    read_indices,
    static_site,
)

from .shared.example_uses import BLOCK, DOUBLED, GRADIENT
from .shared.fixes import positional_fix, renumbering_fix

_block = partial(
    BLOCK.format,
    parameters="x, order, double=False",
    body="return order * x if double else x",
    arguments="x, 2, True",
)
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
            _block(options="static_argnums=[1, 2]"),
            _block(options="static_argnums=(1, 2)"),
            use=GRADIENT,
            fails=_TYPE,
            holds=DOUBLED,
        ),
        Example(
            _block(options="static_argnums=(1, 3)"),
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
        Example(_block(options="static_argnums=(1, -1)"), use=GRADIENT, holds=DOUBLED),
        "import jax\n\nf = jax.jit(lambda x, n: x * n, static_argnums=[1])\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each `static_argnums` in the module that is wrong."""
        reported: set[ast.expr] = set()
        for option, site in options_in(project, module):
            if option.name == "static_argnums" and option.value not in reported:
                found = self._wrong(site, option, project)
                if found is not None:
                    reported.add(option.value)
                    yield found

    def _wrong(self, site: Site, option: Option, project: Project) -> Finding | None:
        api = site.definition
        if api.static_option is None or api.static_calls == "unknown":
            return None
        if expects_failure(option.module, option.value):
            return None
        indices = read_indices(project, option)
        if indices.type and indices.type not in api.static_indices:
            return None if uses_next_implementation(project) else self._type(site, option, indices)
        return self._index(site, option, indices, project)

    def _type(self, site: Site, option: Option, indices: Indices) -> Finding:
        api = site.definition
        wanted = "an int or a tuple of ints" if "int" in api.static_indices else "a tuple of ints"
        fix = Fix.manual(f"write {wanted}")
        if indices.values is not None and indices.node is option.value:
            text = repr(indices.values)
            change = Replace(option.module, option.value, Code(text))
            fix = Fix(f"write `{text}`", Safety.SAFE, (change,))
        return self.finding(
            *option.module.location(option.value),
            f"`static_argnums` of `{api.name}` must be {wanted}; a {indices.type} raises"
            " `TypeError`",
            fix=fix,
        )

    def _index(
        self, site: Site, option: Option, indices: Indices, project: Project
    ) -> Finding | None:
        """Return a finding for an index that names no argument, or an unexpected one."""
        api, values = site.definition, indices.values
        targets = known_targets(project, site)
        if not targets or values is None or site.application is None:
            return None
        target = targets[0]
        node = target.function.node
        if node.args.vararg is not None:
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
                *option.module.location(option.value),
                f"`static_argnums` contains {outside[0]}, but {site.target or 'the function'} has"
                " no such argument and the call raises `ValueError`",
                confidence="high" if site.certain else "medium",
                fix=Fix.manual(f"the index of the last argument is {last}"),
                related=tuple(
                    Related(*definition.location(parameter), "the last argument")
                    for parameter in node.args.args[-1:]
                ),
            )
        if lost := lost_indices(api, values):
            return self._lost(site, option, values, lost[0], project)
        return self._negative(site, option, project)

    def _lost(
        self, site: Site, option: Option, values: tuple[int, ...], lost: int, project: Project
    ) -> Finding:
        """Return a finding for `-1` of Flax."""
        api, static = site.definition, static_site(project, site)
        assert static is not None
        last = len(positional_parameters(static.function)) - 1
        if values == (-1,) and api.counting == "method" and static.sees_all_calls:
            fix = renumbering_fix(project, static, (last,), last)
        else:
            advice = f"use a non-negative index, counting `self` as 0; the last argument is {last}"
            fix = Fix.manual(advice)
        return self.finding(
            *option.module.location(option.value),
            f"index {lost} of `{api.name}` names none of the arguments: Flax shifts indices, so the"
            " last argument is not static",
            severity="warning",
            fix=fix,
        )

    def _negative(self, site: Site, option: Option, project: Project) -> Finding | None:
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
            *option.module.location(option.value),
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
