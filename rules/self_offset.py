"""RMT502: `static_argnums` of a Flax module counts `self` incorrectly."""

from __future__ import annotations

from collections.abc import Iterator

from remat_migrate.api import Example, Finding, Fix, Module, Project, Related, Rule, sites_in
from remat_migrate.api.code import expects_failure
from remat_migrate.api.statics import SelfOffset as Offset
from remat_migrate.api.statics import self_offset

from .shared.example_uses import FLAX_INIT, TRACED
from .shared.fixes import renumbering_fix

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
    """## What it does
    Checks for a `static_argnums` of `flax.linen.remat` that counts as `jax.checkpoint` does,
    without the module, and for one of `partitioning.remat` that counts the module. Reports it where
    the argument next to the named one must be concrete, or where the named one is an array and its
    neighbor is a flag.

    ## Why is this bad?
    For `nn.remat` the module is 0 and the first argument of the call is 1, whether it wraps a
    class, a method, or a function that takes a module first. An index that is one too small
    silently makes an array static and leaves the flag traced, so a branch on the flag raises
    `TracerBoolConversionError`. For `partitioning.remat` the first argument is 0. Haiku counts as
    `jax.checkpoint` does, and `nnx.remat` counts the parameters of the wrapped function. Equinox
    treats non-array arguments as static.

    ## Fix
    Shifts the indices, where the result names exactly the arguments that must be concrete.
    """

    code, name = "RMT502", "self-offset"
    url = (
        "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/transformations.html"
    )

    wrong = [
        Example(
            _CLASS % "nn.remat(Block, static_argnums=(1,))",
            _CLASS % "nn.remat(Block, static_argnums=(2,))",
            use=FLAX_INIT,
            fails=TRACED,
            holds=_HOLDS,
        ),
        Example(
            _CLASS % "partitioning.remat(Block, static_argnums=(2,))",
            _CLASS % "partitioning.remat(Block, static_argnums=(1,))",
            use=FLAX_INIT,
            fails=TRACED,
            holds=_HOLDS,
        ),
        # No call is visible, but `train` must be concrete, and `x` is an array.
        Example(
            _CLASS.partition("\n\nclass Net")[0].replace("train: bool", "train")
            + "\n\nRematBlock = nn.remat(Block, static_argnums=(1,))\n",
            use="import jax\n\nRematBlock().init(jax.random.key(0), jax.numpy.ones(3), False)\n",
            fails=TRACED,
        ),
        Example(
            _SILENT % "(1,)",
            _SILENT % "(2,)",
            use=_SILENT_USE,
            shows="assert static == [False]\n",
            holds="assert static == [True]\n",
        ),
    ]
    right = [
        # `nnx.remat` counts the parameters of the function and keeps keywords static.
        Example(
            "from functools import partial\n\nfrom flax import nnx\n\n\n"
            "@partial(nnx.remat, static_argnums=(2,))\n"
            "def block(layer, x, train):\n    return layer(x) if train else x\n",
            use="import jax\n\nlayer = nnx.Linear(3, 3, rngs=nnx.Rngs(0))\n"
            "value = block(layer, jax.numpy.ones(3), True)\n",
            holds=_HOLDS,
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each site whose indices are off by one."""
        for site in sites_in(project, module):
            found = self_offset(project, site)
            if found is not None and not _deliberate(found):
                yield self._found(found, project)

    def _found(self, found: Offset, project: Project) -> Finding:
        site, option = found.static.site, found.static.option
        now = " and ".join(f"`{p.name}`" for p in found.static.static) or "no argument"
        meant = " and ".join(f"`{p.name}`" for p in found.wanted)
        counts = (
            "counts `self` as 0"
            if site.definition.counting == "method"
            else "does not count `self`"
        )
        related = tuple(
            Related(
                *n.need.module.location(n.need.node),
                f"the value of `{n.need.parameter}` is needed here: {n.need.reason}",
            )
            for n in found.needs
        )
        return self.finding(
            *option.module.location(option.value),
            f"`{site.api}` {counts}, so `static_argnums` names {now} instead of {meant}",
            severity="error" if found.needs else "warning",
            confidence="high" if found.needs and site.certain else "medium",
            fix=_fix(found, project),
            related=related,
        )


def _deliberate(found: Offset) -> bool:
    """Return whether a test expects the failure."""
    site = found.static.site
    return expects_failure(site.module, site.reference) or (
        bool(found.needs) and all(n.deliberate for n in found.needs)
    )


def _fix(found: Offset, project: Project) -> Fix:
    indices = tuple(p.index for p in found.wanted)
    title = f"write `static_argnums={indices!r}`"
    meant = " and ".join(f"`{p.name}`" for p in found.wanted)
    if not found.exact:
        return Fix.manual(f"{title} if {meant} are flags, which no annotation or use shows")
    if not found.needs and not found.static.sees_all_calls:
        return Fix.manual(f"{title}, and pass {meant} by position; not all calls are visible")
    last = max(p.position for p in found.wanted)
    return renumbering_fix(project, found.static, indices, last)
