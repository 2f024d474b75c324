"""RMT605: `checkpoint_name` in the forward rule of a `custom_vjp`.

https://github.com/jax-ml/jax/pull/40309
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.names.scopes import FunctionNode
from remat_migrate.analysis.policies.checkpoint_names import names_of
from remat_migrate.analysis.values.values import Function
from remat_migrate.rule import Example, Finding, Related

from .readiness import Readiness, because, severity

_ACT = """\
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name


@jax.custom_vjp
def act(x):
    return jnp.sin(x)


def forward(x):
    slope = %s
    return jnp.sin(x), slope


def backward(slope, cotangent):
    return (slope * cotangent,)


act.defvjp(forward, backward)


def block(x):
    return jnp.sin(%s)


def loss(x):
    policy = jax.checkpoint_policies.save_only_these_names("slope", "act")
    return jax.checkpoint(block, policy=policy)(x)
"""
_USE = """\
from jax._src.ad_checkpoint import saved_residuals


def count():
    return sum("argument" not in text for _, text in saved_residuals(loss, 1.0))


kept = [count()]
if hasattr(jax.config, "jax_remat3"):
    jax.config.update("jax_remat3", True)
    kept.append(count())
"""


class NameInForwardRule(Readiness):
    """## What it does

    Finds `checkpoint_name` in the forward rule of a `jax.custom_vjp`: the function that is given
    first to `defvjp`.

    ## Why is this bad?

    Today a policy saves what is named there. In the next implementation, behind the flag
    `jax_remat3`, it does not, unless the flag `jax_custom_vjp3` is on, too: the forward rule is run
    again as a whole, without a word. Values and gradients are the same; memory and time are not.

    ## Fix

    None: name what goes into the function, or what comes out of it, where it is called.
    """

    code: ClassVar[str] = "RMT605"
    name: ClassVar[str] = "name-in-forward-rule"
    words: ClassVar[tuple[str, ...]] = ("checkpoint_name",)

    wrong: ClassVar[list[Example]] = [
        Example(
            _ACT % ('checkpoint_name(jnp.cos(x), "slope")', "act(jnp.exp(x))"),
            use=_USE,
            shows="assert kept in ([1], [1, 0]), kept\n",
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(
            _ACT % ("jnp.cos(x)", 'checkpoint_name(act(jnp.exp(x)), "act")'),
            use=_USE,
            holds="assert set(kept) == {1}, kept\n",
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each name in a forward rule."""
        if "checkpoint_name" not in module.source.text or "defvjp" not in module.source.text:
            return
        rules = dict(_forward_rules(project, module))
        if not rules:
            return
        for naming in names_of(project).namings:
            if naming.module is not module or not naming.sure:
                continue
            function = next(
                (around for around in module.ancestors(naming.node) if around in rules), None
            )
            if isinstance(function, FunctionNode):
                yield self.finding(
                    module.source,
                    module.span(naming.node),
                    "from `jax_remat3` on no policy saves what is named in the forward rule of a"
                    " custom_vjp",
                    severity=severity(project),
                    reason=because("name what the function takes or gives where it is called"),
                    related=(
                        Related(
                            module.source,
                            module.span(rules[function]),
                            "this makes it the forward rule",
                        ),
                    ),
                )


def _forward_rules(project: Project, module: Module) -> Iterator[tuple[ast.AST, ast.Call]]:
    """The functions of a module that are given to `defvjp` as forward rules."""
    for node in module.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="defvjp"), args=[first, *_]):
                forward: ast.expr | None = first
            case ast.Call(func=ast.Attribute(attr="defvjp"), keywords=keywords):
                forward = next((k.value for k in keywords if k.arg == "fwd"), None)
            case _:
                continue
        for value in project.values(module, forward) if forward is not None else ():
            if isinstance(value, Function) and value.module is module:
                yield value.node, node
