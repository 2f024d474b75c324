"""RMT503: a checkpoint function does not support the module that it wraps."""

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
    sites_in,
)
from remat_migrate.api.changes import Change, Code, Refused, Replace
from remat_migrate.api.code import expects_failure, reference_to
from remat_migrate.api.statics import Fault, wrong_wrapper

from .shared.example_uses import FLAX_INIT

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
_SHAPE = "assert value.shape == (3,)\n"

_HASH = "must hash what it wraps; a {} cannot be hashed and raises `TypeError`"
_REMAT = "use `nn.remat`, which wraps the class, or a function that takes the module first"
# What goes wrong, what to do instead, and the function to use.
_FAULTS: dict[Fault, tuple[str, str, str | None]] = {
    "linen-instance": (
        _HASH.format("Flax module with variables"),
        _REMAT,
        None,
    ),
    "linen-method": (
        "treats `self` of a Flax module as an argument and raises `TypeError`",
        "use `nn.remat` above `nn.compact`",
        "flax.linen.remat",
    ),
    "haiku": (
        "traces the parameters of a Haiku module and raises `UnexpectedTracerError`",
        "use `hk.remat`",
        "haiku.remat",
    ),
    "equinox": (
        _HASH.format("module with arrays"),
        "use `eqx.filter_checkpoint`, which treats non-array arguments as static",
        "equinox.filter_checkpoint",
    ),
}


class WrongWrapper(Rule):
    """## What it does
    Checks for `jax.checkpoint` around modules: an instance of a Flax linen module in a method of
    another module, a method of a Flax module, a Haiku module or a function that creates one inside
    `hk.transform`, and an Equinox module with arrays.

    ## Why is this bad?
    `jax.checkpoint` hashes what it wraps and treats a method's `self` as an array, so Flax and
    Equinox modules raise `TypeError`. Haiku parameters that are created inside `jax.checkpoint` are
    tracers outside it and raise `UnexpectedTracerError` where they are used. Wrap functions of
    parameters instead, such as `model.apply` and `transformed.apply`. Since jax 0.4.36 the function
    may also use a Flax submodule.

    ## Fix
    Uses the framework's own function: `nn.remat` above `nn.compact`, `hk.remat`, or
    `eqx.filter_checkpoint`. Instances of Flax modules are not rewritten, because parameters are
    stored under the name of the module. The finding says what to wrap instead.
    """

    code, name = "RMT503", "wrong-wrapper"
    url = "https://dm-haiku.readthedocs.io/en/latest/notebooks/transforms.html"

    wrong = [
        Example(
            _FLAX % "jax.checkpoint(self.block)(x)",
            use=FLAX_INIT,
            fails=Fails("TypeError: .*__hash__"),
        ),
        Example(
            _METHOD % "jax.checkpoint",
            _METHOD % "nn.remat",
            use=FLAX_INIT,
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
            _EQUINOX % ("jax.checkpoint", ", prevent_cse=False"),
            _EQUINOX % ("eqx.filter_checkpoint", ", prevent_cse=False"),
            use=_EQUINOX_USE,
            fails=Fails("TypeError: unhashable"),
            holds=_SHAPE,
        ),
    ]
    right = [
        Example(
            "import flax.linen as nn\nimport jax\n\nmodel = nn.Dense(3)\n"
            "apply = jax.checkpoint(model.apply)\n",
            use="x = jax.numpy.ones(3)\nvalue = apply(model.init(jax.random.PRNGKey(0), x), x)\n",
            holds=_SHAPE,
        ),
        _FLAX % "jax.checkpoint(lambda x: self.block(x))(x)",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each site that wraps an unsupported module."""
        for site in sites_in(project, module):
            fault = wrong_wrapper(project, site)
            if fault is not None and not expects_failure(module, site.reference):
                yield self.finding(
                    module.source,
                    site.span,
                    f"`{site.api}` {_FAULTS[fault][0]}",
                    confidence="medium" if fault == "haiku" else "high",
                    fix=_fix(project, site, fault),
                )


def _fix(project: Project, site: Site, fault: Fault) -> Fix:
    _, instead, api = _FAULTS[fault]
    try:
        changes = _changes(project, site, fault, api)
    except Refused as refused:
        return Fix.manual(f"{instead}: {refused.reason}" if refused.reason else instead)
    return Fix(instead, Safety.SAFE, tuple(changes))


def _changes(project: Project, site: Site, fault: Fault, api: str | None) -> list[Change]:
    """Return the changes that use the framework's own checkpoint function.

    Raises:
        Refused: no rewrite is known to keep the behavior.
    """
    module, application = site.module, site.application
    if api is None or application is None or site.reference not in ast.walk(application):
        raise Refused("")
    if not site.arguments.keys() <= {"prevent_cse", "policy"}:
        raise Refused("")
    if fault == "linen-method":
        holder = module.parent(application)
        assert isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef)
        if holder.decorator_list[0] is not application:  # `nn.compact` must be below
            raise Refused("it must be the outermost decorator")
    reference = reference_to(module, project, api, site.reference)
    return [Replace(module, site.reference, Code(reference.text)), *reference.changes]
