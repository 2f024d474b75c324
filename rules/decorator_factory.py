"""RMT504: a checkpoint with options and nothing to wrap.

https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.names.expected_failures import expects_failure
from remat_migrate.analysis.sites.site import Site, sites_in
from remat_migrate.analysis.values.values import Partial
from remat_migrate.libraries.apis import APIS
from remat_migrate.rewrite import Refused
from remat_migrate.rule import Example, Fails, Finding, Fix, Rule, Safety

_MISSING = Fails("TypeError: .*missing 1 required positional argument")
_FUNCTION = """\
%simport jax

POLICY = jax.checkpoint_policies.dots_saveable


@%s
def block(x):
    return x * jax.numpy.sin(x)
"""
_FLAX = """\
%simport flax.linen as nn


class Block(nn.Module):
    @%s
    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)
"""
_USE = "gradient = jax.grad(block)(0.0)\n"
_HOLDS = "assert gradient == 0.0\n"
_FLAX_USE = """\
import jax

value, variables = Block().init_with_output(jax.random.PRNGKey(0), jax.numpy.ones(3))
"""


class DecoratorFactory(Rule):
    """
    ## What it does
    Finds checkpoints that are called with options alone: `@jax.checkpoint(policy=p)`,
    `jax.remat(prevent_cse=False)(f)`, `@nn.remat(static_argnums=(2,))`, `@hk.remat()`.

    ## Why is this bad?
    `jax.checkpoint`, `flax.linen.remat` and `haiku.remat` take the function first: without one
    they raise a `TypeError`, in every release. `flax.nnx.remat`, `equinox.filter_checkpoint` and
    those of brainstate do return a decorator.

    ## Fix
    `functools.partial` gives the options; where the function stands right behind, it becomes the
    first argument; without any option, the call goes.
    """

    code: ClassVar[str] = "RMT504"
    name: ClassVar[str] = "decorator-factory"
    url: ClassVar[str] = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"

    wrong: ClassVar[list[Example]] = [
        Example(
            _FUNCTION % ("", "jax.checkpoint(policy=POLICY)"),
            _FUNCTION
            % ("from functools import partial\n\n", "partial(jax.checkpoint, policy=POLICY)"),
            use=_USE,
            fails=_MISSING,
            holds=_HOLDS,
        ),
        Example(
            _FUNCTION % ("", "jax.remat()"),
            _FUNCTION % ("", "jax.remat"),
            use=_USE,
            fails=_MISSING,
            holds=_HOLDS,
        ),
        Example(
            "import jax\n\nblock = jax.checkpoint(prevent_cse=False)(jax.numpy.sin)\n",
            "import jax\n\nblock = jax.checkpoint(jax.numpy.sin, prevent_cse=False)\n",
            use=_USE,
            fails=_MISSING,
            holds="assert gradient == 1.0\n",
        ),
        Example(
            _FLAX % ("", "nn.remat(prevent_cse=False)"),
            _FLAX % ("from functools import partial\n\n", "partial(nn.remat, prevent_cse=False)"),
            use=_FLAX_USE,
            fails=_MISSING,
            holds="assert list(variables['params']) == ['Dense_0']\n",
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(
            _FUNCTION
            % ("from functools import partial\n\n", "partial(jax.checkpoint, policy=POLICY)"),
            use=_USE,
            holds=_HOLDS,
        ),
        Example(
            "import jax\nfrom flax import nnx\n\n\n"
            "@nnx.remat(prevent_cse=False)\ndef block(x):\n    return x * jax.numpy.sin(x)\n",
            use=_USE,
            holds=_HOLDS,
        ),
        Example(
            "import equinox as eqx\nimport jax\n\n\n"
            "@eqx.filter_checkpoint(prevent_cse=False)\n"
            "def block(x):\n    return x * jax.numpy.sin(x)\n",
            use=_USE,
            holds=_HOLDS,
        ),
        "def checkpoint(policy):\n    return lambda f: f\n\n\n"
        "@checkpoint(policy=None)\ndef block(x):\n    return x\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each call that has nothing to wrap."""
        for site in sites_in(project, module):
            factory = factory_call(site)
            if factory is None or expects_failure(module, factory):
                continue
            fix: Fix | None = None
            reason = ""
            if site.certain:
                from remat_migrate.rewrite.factories import supply_subject

                try:
                    changes = tuple(supply_subject(project, site, factory))
                    fix = Fix(_title(factory, module), Safety.SAFE, changes)
                except Refused as refused:
                    reason = refused.reason
            yield self.finding(
                module.source,
                site.span,
                f"{site.api} takes the function first: without one it is a TypeError",
                confidence="high" if site.certain else "medium",
                fix=fix,
                reason=reason,
            )


def factory_call(site: Site) -> ast.Call | None:
    """The call that gives an Api options and no function, where the Api needs one."""
    callee = site.callee
    if site.definition.factory or site.api not in APIS or not isinstance(callee, Partial):
        return None  # what one's own wrapper takes is its own affair
    call = callee.call
    if callee.by_functools or callee.module is not site.module or call.func is not site.reference:
        return None
    spread = any(isinstance(a, ast.Starred) for a in call.args)
    return None if spread or any(k.arg is None for k in call.keywords) else call


def _title(factory: ast.Call, module: Module) -> str:
    if not factory.keywords:
        return f"write `{module.segment(factory.func)}`"
    outer = module.parent(factory)
    called = isinstance(outer, ast.Call) and outer.func is factory
    return "give the function first" if called else "use `functools.partial`"
