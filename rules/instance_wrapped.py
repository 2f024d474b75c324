"""RMT501: `nn.remat` wraps an instance of a Flax module instead of the class."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.api import Example, Fails, Finding, Fix, Module, Project, Rule
from remat_migrate.api.code import expects_failure
from remat_migrate.api.sites import ModuleKind, sites_in, wrapped_instance

from .shared.example_uses import FLAX_INIT

_COMPACT = """\
import flax.linen as nn


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(4)(x)
        return %s(x)
"""
_SETUP = """\
import flax.linen as nn


class Net(nn.Module):
    def setup(self):
        self.block = nn.Dense(4)

    def inner(self, x):
        return self.block(x)

    def __call__(self, x):
        return %s
"""

_TARGET = Fails("TransformTargetError")
# What is wrapped, and how that fails.
_FAILURES = {
    "instance": ("an instance", "`TransformTargetError`"),
    "method": ("a bound method", "an error"),
}
_NAMES = "assert sorted(variables['params']) == %r\n"


class InstanceWrapped(Rule):
    """## What it does
    Checks for `nn.remat(Block())`, `nn.remat(self.block)`, and `nn.remat(self.method)`: an instance
    of a Flax linen module, or a bound method, passed to `flax.linen.remat`, `nn.remat_scan`, or
    `partitioning.remat`.

    ## Why is this bad?
    These functions wrap a module's class, a method in its class body, or a function that takes a
    module first. An instance raises `TransformTargetError`. A bound method raises `AttributeError`,
    because its first argument is mistaken for the module. Equinox, Haiku, and `flax.nnx.remat`
    accept instances.

    ## Fix
    Changes nothing: parameters are stored under the name of the module, which the new code has to
    keep. The finding says what to wrap instead.
    """

    code, name = "RMT501", "instance-wrapped"
    url = (
        "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/transformations.html"
    )

    wrong = [
        Example(
            _COMPACT % "nn.remat(nn.Dense(4))",
            use=FLAX_INIT,
            fails=_TARGET,
        ),
        Example(
            _SETUP % "nn.remat(self.block)(x)",
            use=FLAX_INIT,
            fails=_TARGET,
        ),
        Example(
            _SETUP % "nn.remat(self.inner)(x)",
            use=FLAX_INIT,
            fails=Fails("AttributeError: .*_state"),
        ),
    ]
    right = [
        Example(
            _COMPACT % "nn.remat(nn.Dense)(4)",
            use=FLAX_INIT,
            holds=_NAMES % ["CheckpointDense_0", "Dense_0"],
        ),
        Example(_SETUP % "nn.remat(Net.inner)(self, x)", use=FLAX_INIT, holds=_NAMES % ["block"]),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each site that wraps an instance."""
        for site in sites_in(project, module):
            kind = wrapped_instance(project, site)
            if kind is None or expects_failure(module, site.reference):
                continue
            assert site.subject is not None
            what, error = _FAILURES[kind.form]
            yield self.finding(
                module.source,
                site.span,
                f"`{site.target}` is {what}; `{site.api}` wraps classes and raises {error}",
                confidence="high" if site.certain else "medium",
                fix=Fix.manual(_instead(kind, site.subject[1])),
            )


def _instead(kind: ModuleKind, subject: ast.AST) -> str:
    if kind.form == "method":
        return "wrap the method of the class: `nn.remat(Block.inner)(block, x)`"
    if isinstance(subject, ast.Call):
        return (
            "wrap the class, and name the module as it is named without a checkpoint:"
            ' `nn.remat(Block)(..., name="Block_0")`'
        )
    return (
        "wrap a function that takes the module: `nn.remat(lambda module, x: module(x))(block, x)`"
    )
