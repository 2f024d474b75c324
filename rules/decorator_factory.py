"""RMT504: a checkpoint function is called with options but without a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.api import Example, Fails, Finding, Fix, Module, Project, Rule, Safety, Site
from remat_migrate.api.changes import Refused
from remat_migrate.api.code import Partial, expects_failure
from remat_migrate.api.sites import APIS, sites_in

_MISSING = Fails("TypeError: .*missing 1 required positional argument")
_FUNCTION = """\
%simport jax

POLICY = jax.checkpoint_policies.dots_saveable


@%s
def block(x):
    return x * jax.numpy.sin(x)
"""
_USE = "gradient = jax.grad(block)(0.0)\n"
_HOLDS = "assert gradient == 0.0\n"


class DecoratorFactory(Rule):
    """## What it does
    Checks for checkpoint functions that are called with options only: `@jax.checkpoint(policy=p)`,
    `jax.remat(prevent_cse=False)(f)`, `@nn.remat(static_argnums=(2,))`, `@hk.remat()`.

    ## Why is this bad?
    `jax.checkpoint`, `flax.linen.remat`, and `haiku.remat` take the function as their first
    argument. Without one they raise `TypeError` in every release. `flax.nnx.remat`,
    `equinox.filter_checkpoint`, and the checkpoint functions of brainstate do return a decorator.

    ## Fix
    Passes the options with `functools.partial`. A function that is passed in the next call becomes
    the first argument, and a call without any options is removed.
    """

    code, name = "RMT504", "decorator-factory"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"

    wrong = [
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
    ]
    right = [
        Example(
            "import jax\nfrom flax import nnx\n\n\n"
            "@nnx.remat(prevent_cse=False)\ndef block(x):\n    return x * jax.numpy.sin(x)\n",
            use=_USE,
            holds=_HOLDS,
        ),
        "def checkpoint(policy):\n    return lambda f: f\n\n\n"
        "@checkpoint(policy=None)\ndef block(x):\n    return x\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each call without a function."""
        for site in sites_in(project, module):
            factory = factory_call(site)
            if factory is not None and not expects_failure(module, factory):
                yield self.finding(
                    module.source,
                    site.span,
                    f"`{site.api}` takes the function first and raises `TypeError` without one",
                    confidence="high" if site.certain else "medium",
                    fix=_fix(project, site, factory) if site.certain else None,
                )


def factory_call(site: Site) -> ast.Call | None:
    """Return the call that passes options and no function to an Api that needs one."""
    callee = site.callee
    if site.definition.factory or site.api not in APIS or not isinstance(callee, Partial):
        return None  # a wrapper of the project may be a factory
    call = callee.call
    if callee.by_functools or callee.module is not site.module or call.func is not site.reference:
        return None
    spread = any(isinstance(a, ast.Starred) for a in call.args)
    return None if spread or any(k.arg is None for k in call.keywords) else call


def _fix(project: Project, site: Site, factory: ast.Call) -> Fix:
    from remat_migrate.api.rewrites import supply_subject

    try:
        changes = supply_subject(project, site, factory)
    except Refused as refused:
        return Fix.manual(refused.reason)
    return Fix(_title(factory, site.module), Safety.SAFE, tuple(changes))


def _title(factory: ast.Call, module: Module) -> str:
    if not factory.keywords:
        return f"write `{module.segment(factory.func)}`"
    outer = module.parent(factory)
    called = isinstance(outer, ast.Call) and outer.func is factory
    return "pass the function first" if called else "use `functools.partial`"
