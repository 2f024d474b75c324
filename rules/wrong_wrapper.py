"""RMT503: a checkpoint that is not made for the module that it wraps.

https://dm-haiku.readthedocs.io/en/latest/notebooks/transforms.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.names.expected_failures import expects_failure
from remat_migrate.analysis.sites.references import is_used_elsewhere
from remat_migrate.analysis.sites.site import sites_in
from remat_migrate.analysis.statics.wrong_wrappers import Fault, wrong_wrapper
from remat_migrate.analysis.statics.wrong_wrappers import WrongWrapper as Wrong
from remat_migrate.codemod.changes import Change, Code, Remove, Replace
from remat_migrate.rewrite import Refused
from remat_migrate.rule import Example, Fails, Finding, Fix, Rule, Safety

_FLAX = """\
import flax.linen as nn
import jax


class Net(nn.Module):
    def setup(self):
        self.block = nn.Dense(3)

    def __call__(self, x):
        return %s
"""
_METHOD = """\
import flax.linen as nn
import jax


class Net(nn.Module):
    @%s
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)
"""
_FLAX_USE = """\
value, variables = Net().init_with_output(jax.random.PRNGKey(0), jax.numpy.ones(3))
"""
_HAIKU = """\
import haiku as hk
import jax


class Block(hk.Module):
    def __call__(self, x):
        return hk.Linear(3)(x)


def forward(x):
    return %s(Block())(x)


model = hk.transform(forward)
"""
_HAIKU_USE = """\
key, x = jax.random.PRNGKey(0), jax.numpy.ones(3)
params = model.init(key, x)
value = model.apply(params, key, x)
"""
_EQUINOX = """\
import equinox as eqx
import jax

layer = eqx.nn.Linear(3, 3, key=jax.random.PRNGKey(0))
block = %s(layer%s)
"""
_EQUINOX_USE = "value = block(jax.numpy.ones(3))\n"
_NNX = """\
from flax import nnx
import jax


class Net(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(3, 3, rngs=rngs)

    def inner(self, x):
        return self.layer(x)

    def __call__(self, x):
        return %s
"""
_NNX_USE = "value = Net(nnx.Rngs(0))(jax.numpy.ones(3))\n"
_SHAPE = "assert value.shape == (3,)\n"

_HASH = "asks for the hash of what it wraps, which a {} has not: a TypeError"
_MESSAGES: dict[Fault, str] = {
    "linen-instance": _HASH.format("Flax module with variables"),
    "linen-mixed": "and Flax modules do not mix up to jax 0.4.35: a JaxTransformError",
    "linen-method": "takes `self` of a Flax module for an argument: a TypeError",
    "haiku": "makes the parameters of a Haiku module tracers: an UnexpectedTracerError",
    "haiku-outside": "is applied outside of `hk.transform`: a ValueError",
    "equinox": _HASH.format("module with arrays"),
    "nnx-bound": "takes no bound method since flax 0.12.1: a ValueError",
}
_INSTEAD: dict[Fault, str] = {
    "linen-instance": "use `nn.remat`, which wraps the class",
    "linen-mixed": "use `nn.remat`, which wraps the class",
    "linen-method": "use `nn.remat` above `nn.compact`",
    "haiku": "use `hk.remat`",
    "haiku-outside": "apply it where the module is called: `hk.remat(self.inner)(x)`",
    "equinox": "use `eqx.filter_checkpoint`, which makes static what is no array",
    "nnx-bound": "wrap the unbound method, and pass the module: `nnx.remat(Block.inner)(block, x)`",
}
_APIS: dict[Fault, str] = {
    "linen-instance": "flax.linen.remat",
    "linen-mixed": "flax.linen.remat",
    "linen-method": "flax.linen.remat",
    "haiku": "haiku.remat",
    "equinox": "equinox.filter_checkpoint",
}


class WrongWrapper(Rule):
    """
    ## What it does
    Finds `jax.checkpoint` around modules: an instance of a Flax linen module in a method of another
    one, a method of one, a Haiku module or what makes one inside of `hk.transform`, an Equinox
    module that holds arrays. Finds `hk.remat` outside of `hk.transform`, and `nnx.remat` of a bound
    method.

    ## Why is this bad?
    `jax.checkpoint` asks for the hash of what it wraps, and takes a method's `self` for an array:
    a `TypeError` with modules of Flax and Equinox. Parameters that Haiku makes inside of it are
    tracers outside of it: an `UnexpectedTracerError` where they are used. Right is
    `jax.checkpoint` of functions of parameters: `model.apply`, `transformed.apply`, and from jax
    0.4.36 also of a function that uses a submodule of Flax; up to jax 0.4.35 that is a
    `JaxTransformError`. `nnx.remat` refuses bound methods since flax 0.12.1.

    ## Fix
    The framework's own: `nn.remat` of the class or of a function that takes the module, `hk.remat`,
    `eqx.filter_checkpoint`. Parameters keep the names that they have without a checkpoint.
    """

    code: ClassVar[str] = "RMT503"
    name: ClassVar[str] = "wrong-wrapper"
    url: ClassVar[str] = "https://dm-haiku.readthedocs.io/en/latest/notebooks/transforms.html"

    wrong: ClassVar[list[Example]] = [
        Example(
            _FLAX % "jax.checkpoint(self.block)(x)",
            _FLAX % "nn.remat(lambda module, *args: module(*args))(self.block, x)",
            use=_FLAX_USE,
            fails=Fails("TypeError: .*__hash__"),
            holds="assert list(variables['params']) == ['block']\n",
        ),
        Example(
            _METHOD % "jax.checkpoint",
            _METHOD % "nn.remat",
            use=_FLAX_USE,
            fails=Fails("TypeError: .*Net"),
            holds="assert list(variables['params']) == ['Dense_0']\n",
        ),
        Example(
            _HAIKU % "jax.checkpoint",
            _HAIKU % "hk.remat",
            use=_HAIKU_USE,
            fails=Fails("UnexpectedTracerError"),
            holds="assert list(params) == ['block/linear']\n",
        ),
        Example(
            "import haiku as hk\n\n\nclass Block(hk.Module):\n    @hk.remat\n"
            "    def __call__(self, x):\n        return hk.Linear(3)(x)\n",
            use="Block\n",
            fails=Fails("ValueError: .*outside of hk.transform"),
        ),
        Example(
            _EQUINOX % ("jax.checkpoint", ", prevent_cse=False"),
            _EQUINOX % ("eqx.filter_checkpoint", ", prevent_cse=False"),
            use=_EQUINOX_USE,
            fails=Fails("TypeError: unhashable"),
            holds=_SHAPE,
        ),
        Example(
            _NNX % "nnx.remat(self.inner)(x)",
            _NNX % "nnx.remat(lambda module, *args: module.inner(*args))(self, x)",
            use=_NNX_USE,
            fails=Fails("ValueError: .*bound methods", since="0.8.1"),
            holds=_SHAPE,
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(
            "import flax.linen as nn\nimport jax\n\nmodel = nn.Dense(3)\n"
            "apply = jax.checkpoint(model.apply)\n",
            use="x = jax.numpy.ones(3)\nvalue = apply(model.init(jax.random.PRNGKey(0), x), x)\n",
            holds=_SHAPE,
        ),
        Example(
            "import haiku as hk\nimport jax\n\nmodel = hk.transform(lambda x: hk.Linear(3)(x))\n"
            "apply = jax.checkpoint(model.apply)\n",
            use="key, x = jax.random.PRNGKey(0), jax.numpy.ones(3)\n"
            "value = apply(model.init(key, x), key, x)\n",
            holds=_SHAPE,
        ),
        Example(_NNX % "nnx.remat(Net.inner)(self, x)", use=_NNX_USE, holds=_SHAPE),
        Example(_NNX % "nnx.remat(self.layer)(x)", use=_NNX_USE, holds=_SHAPE),
        Example(
            "import equinox as eqx\nimport jax\n\n"
            "layer = eqx.nn.Linear(3, 3, key=jax.random.PRNGKey(0))\n"
            "block = jax.checkpoint(lambda layer, x: layer(x))\n",
            use="value = block(layer, jax.numpy.ones(3))\n",
            holds=_SHAPE,
        ),
        _FLAX % "jax.checkpoint(lambda x: self.block(x))(x)",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each checkpoint that does not go with what it wraps."""
        for site in sites_in(project, module):
            found = wrong_wrapper(project, site)
            if found is None or expects_failure(module, site.reference):
                continue
            fix, reason = _fix(project, found)
            sure = found.fault != "haiku"
            yield self.finding(
                module.source,
                site.span,
                f"{site.api} {_MESSAGES[found.fault]}",
                confidence="high" if sure else "medium",
                fix=fix,
                reason=reason,
            )


def _fix(project: Project, found: Wrong) -> tuple[Fix, str]:
    instead = _INSTEAD[found.fault]
    try:
        changes = _changes(project, found)
    except Refused as refused:
        reason = f"{instead}: {refused.reason}" if refused.reason else instead
        return Fix(reason, Safety.MANUAL), reason
    return Fix(instead, Safety.SAFE, tuple(changes)), ""


def _changes(project: Project, found: Wrong) -> list[Change]:
    """The changes that use the framework's own checkpoint.

    Raises:
        Refused: what it would do instead cannot be told.
    """
    from remat_migrate.rewrite.imports import written
    from remat_migrate.rewrite.module_subject import kept_name, pass_module, wrap_class
    from remat_migrate.rewrite.refusal import check_editable

    site, api = found.site, _APIS.get(found.fault)
    module, application = site.module, site.application
    if application is None or site.reference not in ast.walk(application):
        raise Refused("")
    if found.fault == "haiku-outside":
        raise Refused("")
    changes: list[Change] = []

    def is_needed(name: str) -> bool:
        return is_used_elsewhere(project, module, name)

    for given in sorted(site.arguments.keys() - {"prevent_cse", "policy"}):
        option = site.arguments[given]
        # What is no array is static in any case.
        if found.fault != "equinox" or option.keyword is None or option.call is not application:
            raise Refused("")
        check_editable(module, [option.keyword])
        changes.append(Remove(module, option.keyword, is_needed))
    if found.fault == "linen-method":
        _check_above(site.module, application)
    elif found.fault in ("linen-instance", "linen-mixed", "nnx-bound"):
        if isinstance(found.subject, ast.Call):
            name = kept_name(project, module, found.subject, (found.subject,))
            changes.append(wrap_class(site, found.subject, name))
        else:
            changes += pass_module(project, site, bound=found.bound)
    if api is not None:
        reference = written(project, module, api, site.reference)
        changes += [Replace(module, site.reference, Code(reference.text)), *reference.changes]
    return changes


def _check_above(module: Module, application: ast.expr) -> None:
    """`nn.remat` of a compact method stands above `nn.compact`."""
    holder = module.parent(application)
    assert isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef)
    above = holder.decorator_list[: holder.decorator_list.index(application)]
    if above:
        raise Refused("it must be the outermost decorator")
