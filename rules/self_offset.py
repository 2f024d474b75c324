"""RMT502: `static_argnums` of a Flax module that count `self` in another way than they should.

https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/transformations.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.names.expected_failures import expects_failure
from remat_migrate.analysis.sites.call_search import uses_of
from remat_migrate.analysis.sites.site import sites_in
from remat_migrate.analysis.statics.self_offset import SelfOffset as Offset
from remat_migrate.analysis.statics.self_offset import self_offset
from remat_migrate.analysis.statics.static_options import read_indices
from remat_migrate.codemod.changes import Code, Replace
from remat_migrate.rule import Example, Fails, Finding, Fix, Related, Rule, Safety

from .positional_fixes import by_position

_TRACED = Fails("TracerBoolConversionError|ConcretizationTypeError")
_CLASS = """\
import flax.linen as nn
from flax.linen import partitioning


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool):
        return nn.Dropout(0.5, deterministic=not train)(nn.Dense(3)(x))


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return %s(name="block")(x, False)
"""
_METHOD = """\
from functools import partial

import flax.linen as nn


class Net(nn.Module):
    def setup(self):
        self.layer = nn.Dense(3)

    @partial(nn.remat, static_argnums=%s)
    def layers(self, x, n: int):
        for _ in range(n):
            x = self.layer(x)
        return x

    def __call__(self, x):
        return self.layers(x, 2)
"""
_FUNCTION = """\
import flax.linen as nn


def layers(mdl, x, train: bool):
    y = mdl(x)
    return y if train else 2 * y


class Net(nn.Module):
    def setup(self):
        self.block = nn.Dense(3)

    def __call__(self, x):
        return nn.remat(layers, static_argnums=%s)(self.block, x, False)
"""
_USE = """\
import jax

value, variables = Net().init_with_output(jax.random.PRNGKey(0), jax.numpy.ones(3))
"""
_HOLDS = "assert value.shape == (3,)\n"
_SILENT = """\
import flax.linen as nn
import jax.numpy as jnp

static = []


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool):
        static.append(isinstance(train, bool))
        return jnp.where(train, 2 * x, x)


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.remat(Block, static_argnums=%s)(name="block")(jnp.sin(x), True)
"""
_SILENT_USE = "value = Net().apply({}, jnp.ones(3))\n"


class SelfOffset(Rule):
    """
    ## What it does
    Finds `static_argnums` of `flax.linen.remat` that count as `jax.checkpoint` does, without the
    module, and those of `partitioning.remat` that count it: where Python needs the value of the
    argument next to the one that is named, or where that one is an array and its neighbour a flag.

    ## Why is this bad?
    For `nn.remat` the module is 0, and the first argument of the call is 1: of a class, of a method
    and of a function that takes a module first. An index that is one too small makes an array
    static, in silence, and leaves the flag traced: a branch on it raises a
    `TracerBoolConversionError`. For `partitioning.remat` the first argument is 0. Haiku counts as
    `jax.checkpoint` does, Flax nnx the parameters of the function that is wrapped; Equinox makes
    static what is no array, without being told.

    ## Fix
    The indices are shifted, where that names exactly what Python needs.
    """

    code: ClassVar[str] = "RMT502"
    name: ClassVar[str] = "self-offset"
    url: ClassVar[str] = (
        "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/transformations.html"
    )

    wrong: ClassVar[list[Example]] = [
        Example(
            _CLASS % "nn.remat(Block, static_argnums=(1,))",
            _CLASS % "nn.remat(Block, static_argnums=(2,))",
            use=_USE,
            fails=_TRACED,
            holds=_HOLDS,
        ),
        Example(
            _CLASS % "partitioning.remat(Block, static_argnums=(2,))",
            _CLASS % "partitioning.remat(Block, static_argnums=(1,))",
            use=_USE,
            fails=_TRACED,
            holds=_HOLDS,
        ),
        Example(
            _METHOD % "1",
            _METHOD % "(2,)",
            use=_USE,
            fails=Fails("TracerIntegerConversionError|TypeError"),
            holds=_HOLDS,
        ),
        Example(_FUNCTION % "(1,)", _FUNCTION % "(2,)", use=_USE, fails=_TRACED, holds=_HOLDS),
        Example(
            _SILENT % "(1,)",
            _SILENT % "(2,)",
            use=_SILENT_USE,
            shows="assert static == [False]\n",
            holds="assert static == [True]\n",
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(_CLASS % "nn.remat(Block, static_argnums=(2,))", use=_USE, holds=_HOLDS),
        Example(_CLASS % "partitioning.remat(Block, static_argnums=(1,))", use=_USE, holds=_HOLDS),
        Example(_METHOD % "(2,)", use=_USE, holds=_HOLDS),
        Example(_FUNCTION % "(2,)", use=_USE, holds=_HOLDS),
        # `nnx.remat` counts the parameters of the function, and keeps keywords static.
        Example(
            "from functools import partial\n\nfrom flax import nnx\n\n\n"
            "@partial(nnx.remat, static_argnums=(2,))\n"
            "def block(layer, x, train):\n    return layer(x) if train else x\n",
            use="import jax\n\nlayer = nnx.Linear(3, 3, rngs=nnx.Rngs(0))\n"
            "value = block(layer, jax.numpy.ones(3), True)\n",
            holds=_HOLDS,
        ),
        # `hk.remat` counts as `jax.checkpoint` does.
        Example(
            "import haiku as hk\n\n\nclass Block(hk.Module):\n"
            "    def __call__(self, x, train):\n"
            "        return hk.Linear(3)(x) if train else x\n\n\n"
            "def forward(x):\n    return hk.remat(Block(), static_argnums=(1,))(x, True)\n\n\n"
            "model = hk.transform(forward)\n",
            use="import jax\n\nkey, x = jax.random.PRNGKey(0), jax.numpy.ones(3)\n"
            "value = model.apply(model.init(key, x), key, x)\n",
            holds=_HOLDS,
        ),
        # What is no array is static for Equinox.
        Example(
            "import equinox as eqx\nimport jax\n\n\n"
            "@eqx.filter_checkpoint\ndef block(layer, x, train):\n"
            "    return layer(x) if train else x\n",
            use="layer = eqx.nn.Linear(3, 3, key=jax.random.PRNGKey(0))\n"
            "value = block(layer, jax.numpy.ones(3), train=True)\n",
            holds=_HOLDS,
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each application whose indices are off by one."""
        for site in sites_in(project, module):
            found = self_offset(project, site)
            if found is not None and not _deliberate(found):
                yield self._found(found, project)

    def _found(self, found: Offset, project: Project) -> Finding:
        site, option = found.static.site, found.static.option
        now = " and ".join(f"`{p.name}`" for p in found.static.static) or "no argument"
        meant = " and ".join(f"`{p.name}`" for p in found.wanted)
        counts = (
            "counts `self` as 0" if site.definition.counting == "method" else "leaves `self` out"
        )
        related = tuple(
            Related(
                n.need.module.source,
                n.need.module.span(n.need.node),
                f"Python needs `{n.need.parameter}`: {n.need.reason}",
            )
            for n in found.needs
        )
        fix, reason = _fix(found, project)
        return self.finding(
            option.module.source,
            option.module.span(option.value),
            f"{site.api} {counts}: these `static_argnums` name {now} and not {meant}",
            severity="error" if found.needs else "warning",
            confidence="high" if found.needs and site.certain else "medium",
            fix=fix,
            related=related,
            reason=reason,
        )


def _deliberate(found: Offset) -> bool:
    """Whether a test expects the failure."""
    site = found.static.site
    return expects_failure(site.module, site.reference) or (
        bool(found.needs) and all(n.deliberate for n in found.needs)
    )


def _fix(found: Offset, project: Project) -> tuple[Fix, str]:
    from remat_migrate.rewrite.options import indices_text

    static = found.static
    option, site = static.option, static.site
    text = indices_text(tuple(p.index for p in found.wanted))
    reason = f"write `static_argnums={text}`"
    indices = read_indices(project, option)
    uses = uses_of(project, site)
    seen = len(static.bound) == len(uses.calls) > 0 and not uses.escapes
    here = indices.node is option.value and option.call is site.application
    if not (seen and here and found.exact):
        return Fix(reason, Safety.MANUAL), reason
    last = max(p.position for p in found.wanted)
    calls, why = by_position(
        reason, project, replace(static, static=found.wanted), static.bound, last
    )
    if calls.safety is not Safety.SAFE:
        return Fix(f"{reason}: {why}", Safety.MANUAL), f"{reason}: {why}"
    change = Replace(option.module, option.value, Code(text))
    return Fix(reason, Safety.SAFE, (change, *calls.changes)), ""
