"""RMT501: an instance of a Flax module where `nn.remat` takes the class.

https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/transformations.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.names.expected_failures import expects_failure
from remat_migrate.analysis.sites.framework_modules import ModuleKind, makers, module_kind
from remat_migrate.analysis.sites.site import Site, sites_in
from remat_migrate.rewrite import Refused
from remat_migrate.rule import Example, Fails, Finding, Fix, Related, Rule, Safety

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
_CLASS = """\
import flax.linen as nn


class Net(nn.Module):
    def setup(self):
        self.block = %s

    def __call__(self, x):
        return self.block(x)
"""
_USE = """\
import jax

value, variables = Net().init_with_output(jax.random.PRNGKey(0), jax.numpy.ones(3))
"""
_TARGET = Fails("TransformTargetError")
_NAMES = "assert sorted(variables['params']) == %r\n"
_SCANNED = """\
import flax.linen as nn


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return nn.Dense(3)(x), None


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        blocks = nn.scan(
            nn.remat(Block, prevent_cse=False),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=2,
        )
        x, _ = blocks(name="blocks")(x, None)
        return nn.remat_scan(nn.Dense, lengths=(2,))(3, name="stack")(x)
"""


class InstanceWrapped(Rule):
    """
    ## What it does
    Finds `nn.remat(Block())`, `nn.remat(self.block)` and `nn.remat(self.method)`: an instance of a
    Flax linen module, or a method of one, where `flax.linen.remat`, `nn.remat_scan` and
    `partitioning.remat` take a class.

    ## Why is this bad?
    They wrap a module's class, a method in its class body, or a function that takes a module first.
    An instance is a `TransformTargetError`; a method that is bound to one an `AttributeError`, for
    its first argument is taken for the module. Equinox and Haiku wrap instances, `flax.nnx.remat`
    takes them, too.

    ## Fix
    An instance that is made on the spot: the class is wrapped, and gets the arguments; in a compact
    method it also gets the `name=` that it has without a checkpoint, so that stored parameters
    are found. Where that name cannot be told, it is left out, and the fix is unsafe. An instance
    that stands elsewhere: a function of the module is wrapped, and the call passes the module.
    """

    code: ClassVar[str] = "RMT501"
    name: ClassVar[str] = "instance-wrapped"
    url: ClassVar[str] = (
        "https://flax-linen.readthedocs.io/en/latest/api_reference/flax.linen/transformations.html"
    )

    wrong: ClassVar[list[Example]] = [
        Example(
            _COMPACT % "nn.remat(nn.Dense(4))",
            _COMPACT % 'nn.remat(nn.Dense)(4, name="Dense_1")',
            use=_USE,
            fails=_TARGET,
            holds=_NAMES % ["Dense_0", "Dense_1"],
        ),
        Example(
            _CLASS % "nn.remat(nn.Dense(4), prevent_cse=False)",
            _CLASS % "nn.remat(nn.Dense, prevent_cse=False)(4)",
            use=_USE,
            fails=_TARGET,
            holds=_NAMES % ["block"],
        ),
        Example(
            _SETUP % "nn.remat(self.block)(x)",
            _SETUP % "nn.remat(lambda module, *args: module(*args))(self.block, x)",
            use=_USE,
            fails=_TARGET,
            holds=_NAMES % ["block"],
        ),
        Example(
            _SETUP % "nn.remat(self.inner)(x)",
            _SETUP % "nn.remat(lambda module, *args: module.inner(*args))(self, x)",
            use=_USE,
            fails=Fails("AttributeError: .*_state"),
            holds=_NAMES % ["block"],
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(
            _COMPACT % "nn.remat(nn.Dense)(4)",
            use=_USE,
            holds=_NAMES % ["CheckpointDense_0", "Dense_0"],
        ),
        Example(_SETUP % "nn.remat(Net.inner)(self, x)", use=_USE, holds=_NAMES % ["block"]),
        Example(_SCANNED, use=_USE, holds=_NAMES % ["blocks", "stack"]),
        # A method is wrapped above `nn.compact`.
        Example(
            "import flax.linen as nn\n\n\nclass Net(nn.Module):\n    @nn.remat\n    @nn.compact\n"
            "    def __call__(self, x):\n        return nn.Dense(3)(x)\n",
            use=_USE,
            holds=_NAMES % ["Dense_0"],
        ),
        # Equinox and Haiku wrap instances.
        Example(
            "import equinox as eqx\nimport jax\n\n"
            "layer = eqx.nn.Linear(3, 3, key=jax.random.PRNGKey(0))\n"
            "block = eqx.filter_checkpoint(layer)\n",
            use="value = block(jax.numpy.ones(3))\n",
            holds="assert value.shape == (3,)\n",
        ),
        Example(
            "import haiku as hk\n\n\n"
            "def forward(x):\n    return hk.remat(hk.Linear(3))(x)\n\n\n"
            "model = hk.transform(forward)\n",
            use="import jax\n\nparams = model.init(jax.random.PRNGKey(0), jax.numpy.ones(3))\n",
            holds="assert list(params) == ['linear']\n",
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each application to an instance."""
        for site in sites_in(project, module):
            kind = wrapped_instance(project, site)
            if kind is None or expects_failure(module, site.reference):
                continue
            assert site.subject is not None
            subject = site.subject[1]
            assert isinstance(subject, ast.expr)
            fix, reason = _fix(project, site, kind)
            what, error = "an instance", "a TransformTargetError"
            if kind.form == "method":
                what, error = "a method of an instance", "an error"
            related: tuple[Related, ...] = ()
            if not isinstance(subject, ast.Call):
                found = makers(project, module, subject)
                related = tuple(
                    Related(m.source, m.span(call), "the instance is made here")
                    for m, call in found[:1]
                )
            yield self.finding(
                module.source,
                site.span,
                f"`{site.target}` is {what}: {site.api} wraps the class, so it is {error}",
                confidence="high" if site.certain else "medium",
                fix=fix,
                related=related,
                reason=reason,
            )


def wrapped_instance(project: Project, site: Site) -> ModuleKind | None:
    """What a site wraps, if that is an instance or bound method that its Api does not take."""
    if site.definition.modules != "linen" or site.definition.takes_instances:
        return None
    if site.subject is None or not isinstance(site.subject[1], ast.expr):
        return None
    module, subject = site.subject
    assert isinstance(subject, ast.expr)
    kind = module_kind(project, module, subject)
    if kind is None or kind.framework != "linen":
        return None
    if kind.form == "instance":
        return kind if makers(project, module, subject) else None
    if kind.form == "method" and not _called_with_a_module(project, site):
        return kind
    return None


def _called_with_a_module(project: Project, site: Site) -> bool:
    """Whether a bound method may be given a module first: then that is the one that is lifted."""
    module = site.module
    outer = module.parent(site.application) if site.application is not None else None
    if not isinstance(outer, ast.Call) or outer.func is not site.application:
        return True  # not seen
    if not outer.args:
        return True
    first = outer.args[0]
    if isinstance(first, ast.Starred) or module_kind(project, module, first) is not None:
        return True
    values = project.values(module, first)
    return isinstance(first, ast.Name) and first.id in ("mdl", "module", "scope") and bool(values)


def _fix(project: Project, site: Site, kind: ModuleKind) -> tuple[Fix | None, str]:
    from remat_migrate.rewrite.module_subject import pass_module

    assert site.subject is not None
    owner, subject = site.subject
    reason = "wrap the class: `nn.remat(Block)(...)`"
    if "static_argnums" in site.arguments or "methods" in site.arguments:
        reason += ", whose `static_argnums` count `self` as 0"
        return Fix(reason, Safety.MANUAL), reason
    inside = isinstance(site.application, ast.Call) and owner is site.module and site.certain
    if not inside or subject not in ast.walk(site.application or site.reference):
        return Fix(reason, Safety.MANUAL), reason
    if isinstance(subject, ast.Call) and kind.form == "instance":
        return _fix_class(project, site, subject, reason)
    if not site.definition.same_function:
        return Fix(reason, Safety.MANUAL), reason
    try:
        changes = pass_module(project, site, bound=kind.form == "method")
    except Refused as refused:
        return Fix(refused.reason, Safety.MANUAL), refused.reason
    return Fix("wrap a function of the module", Safety.SAFE, tuple(changes)), ""


def _fix_class(
    project: Project, site: Site, maker: ast.Call, reason: str
) -> tuple[Fix | None, str]:
    from remat_migrate.rewrite.module_subject import kept_name, wrap_class

    module = site.module
    kind = module_kind(project, module, maker.func)
    holder = module.parent(site.application) if site.application is not None else None
    passed_on = isinstance(holder, ast.Call) and site.application in holder.args
    lifted = (
        passed_on
        and any(name.startswith("flax.linen.") for name in project.qualified(module, holder.func))
        if isinstance(holder, ast.Call)
        else False
    )
    if kind is None or kind.form != "class" or lifted:
        return Fix(reason, Safety.MANUAL), reason
    name: str | None = None
    safety = Safety.SAFE
    if site.definition.same_function:
        try:
            name = kept_name(project, module, maker, _wrapped_here(project, module))
        except Refused as refused:
            safety, reason = Safety.UNSAFE, refused.reason
    title = "wrap the class" if name is None else f"wrap the class, and name the module {name}"
    fix = Fix(title, safety, (wrap_class(site, maker, name),))
    return fix, reason if safety is Safety.UNSAFE else ""


def _wrapped_here(project: Project, module: Module) -> list[ast.Call]:
    """The calls whose instances are wrapped in this module."""
    found = []
    for site in sites_in(project, module):
        if site.subject is not None and isinstance(site.subject[1], ast.Call):
            if wrapped_instance(project, site) is not None:
                found.append(site.subject[1])
    return found
