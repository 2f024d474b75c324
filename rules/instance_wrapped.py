"""RMT501: `nn.remat` wraps an instance of a Flax module instead of the class."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.api import (
    Example,
    Fails,
    Finding,
    Fix,
    Module,
    Project,
    Rule,
    Safety,
    Site,
)
from remat_migrate.api.changes import Refused
from remat_migrate.api.code import expects_failure
from remat_migrate.api.sites import ModuleKind, module_kind, sites_in, wrapped_instance

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
    If the instance is created in the call, wraps the class and passes the arguments to it. In a
    compact method it also passes the `name=` that the module has without a checkpoint, so that
    stored parameters are found; if that name is unknown, the fix is manual. If the instance is
    created elsewhere, wraps a function that takes the module, and passes the module in the call.
    """

    code, name = "RMT501", "instance-wrapped"
    url = (
        "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/transformations.html"
    )

    wrong = [
        Example(
            _COMPACT % "nn.remat(nn.Dense(4))",
            _COMPACT % 'nn.remat(nn.Dense)(4, name="Dense_1")',
            use=FLAX_INIT,
            fails=_TARGET,
            holds=_NAMES % ["Dense_0", "Dense_1"],
        ),
        Example(
            _SETUP % "nn.remat(self.block)(x)",
            _SETUP % "nn.remat(lambda module, *args: module(*args))(self.block, x)",
            use=FLAX_INIT,
            fails=_TARGET,
            holds=_NAMES % ["block"],
        ),
        Example(
            _SETUP % "nn.remat(self.inner)(x)",
            _SETUP % "nn.remat(lambda module, *args: module.inner(*args))(self, x)",
            use=FLAX_INIT,
            fails=Fails("AttributeError: .*_state"),
            holds=_NAMES % ["block"],
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
            what, error = "an instance", "`TransformTargetError`"
            if kind.form == "method":
                what, error = "a bound method", "an error"
            yield self.finding(
                module.source,
                site.span,
                f"`{site.target}` is {what}; `{site.api}` wraps classes and raises {error}",
                confidence="high" if site.certain else "medium",
                fix=_fix(project, site, kind),
            )


def _fix(project: Project, site: Site, kind: ModuleKind) -> Fix:
    from remat_migrate.api.rewrites import library_values, pass_module

    assert site.subject is not None
    owner, subject = site.subject
    advice = "wrap the class: `nn.remat(Block)(...)`"
    if kind.form == "method":
        advice = "wrap the method of the class: `nn.remat(Block.inner)(block, x)`"
    made = isinstance(subject, ast.Call) and kind.form == "instance"
    if "methods" in site.arguments or ("static_argnums" in site.arguments and made):
        return Fix.manual(f"{advice}; its `static_argnums` count `self` as 0")
    inside = isinstance(site.application, ast.Call) and owner is site.module and site.certain
    if not inside or subject not in ast.walk(site.application or site.reference):
        return Fix.manual(advice)
    try:
        concrete = library_values(project, site) if made else ()
        if isinstance(subject, ast.Call) and concrete is None:
            return _class_fix(project, site, subject, advice)
        if not site.definition.same_function:
            return Fix.manual(advice)
        changes = pass_module(project, site, bound=kind.form == "method", concrete=concrete or ())
    except Refused as refused:
        return Fix.manual(refused.reason)
    return Fix("wrap a function that takes the module", Safety.SAFE, tuple(changes))


def _class_fix(project: Project, site: Site, maker: ast.Call, advice: str) -> Fix:
    """Return the fix that wraps the class of an instance.

    Raises:
        Refused: the name of the module, or of others, would change.
    """
    from remat_migrate.api.rewrites import kept_name, wrap_class

    module = site.module
    kind = module_kind(project, module, maker.func)
    if kind is None or kind.form != "class" or _is_lifted(project, site):
        return Fix.manual(advice)
    name = None
    if site.definition.same_function:
        name = kept_name(project, module, maker, _wrapped_here(project, module))
    title = "wrap the class" if name is None else f"wrap the class and name the module {name}"
    return Fix(title, Safety.SAFE, (wrap_class(site, maker, name),))


def _is_lifted(project: Project, site: Site) -> bool:
    """Return whether another lifted transformation takes what the site returns."""
    module = site.module
    holder = module.parent(site.application) if site.application is not None else None
    return (
        isinstance(holder, ast.Call)
        and site.application in holder.args
        and any(name.startswith("flax.linen.") for name in project.qualified(module, holder.func))
    )


def _wrapped_here(project: Project, module: Module) -> list[ast.Call]:
    """Return the calls that create the instances that sites of this module wrap."""
    return [
        site.subject[1]
        for site in sites_in(project, module)
        if site.subject is not None
        and isinstance(site.subject[1], ast.Call)
        and wrapped_instance(project, site) is not None
    ]
