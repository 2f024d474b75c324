"""RMT605: `checkpoint_name` in the forward rule of a `custom_vjp`.

https://github.com/jax-ml/jax/pull/40309
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.policies.checkpoint_names import names_of
from remat_migrate.analysis.values.values import Function
from remat_migrate.rule import Example, Finding, Related

from .shared.example_uses import RESIDUALS_UNDER_REMAT3
from .shared.next_implementation import NextImplementationRule

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


class NameInForwardRule(NextImplementationRule):
    """## What it does
    Checks for `checkpoint_name` in the forward rule of a `jax.custom_vjp`, which is the first
    argument of `defvjp`.

    ## Why is this bad?
    Today a policy can save values that are named there. In the next implementation, behind the flag
    `jax_remat3`, it silently cannot, unless the flag `jax_custom_vjp3` is also on: the whole
    forward rule is recomputed. Values and gradients stay the same; memory and time change.

    ## Fix
    Not fixed automatically. Name the inputs or outputs of the function where it is called.
    """

    code, name = "RMT605", "name-in-forward-rule"
    words = ("checkpoint_name",)

    wrong = [
        Example(
            _ACT % ('checkpoint_name(jnp.cos(x), "slope")', "act(jnp.exp(x))"),
            use=RESIDUALS_UNDER_REMAT3,
            shows="assert kept in ([1], [1, 0]), kept\n",
        ),
    ]
    right = [
        Example(
            _ACT % ("jnp.cos(x)", 'checkpoint_name(act(jnp.exp(x)), "act")'),
            use=RESIDUALS_UNDER_REMAT3,
            holds="assert set(kept) == {1}, kept\n",
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each name in a forward rule."""
        if "checkpoint_name" not in module.source.text or "defvjp" not in module.source.text:
            return
        rules = dict(_forward_rules(project, module))
        for naming in project.once(names_of).namings if rules else ():
            if naming.module is not module or not naming.sure:
                continue
            function = next((a for a in module.ancestors(naming.node) if a in rules), None)
            if function is not None:
                defvjp = module.location(rules[function])
                yield self.next_finding(
                    project,
                    module.location(naming.node),
                    "under `jax_remat3` no policy saves values that are named in the forward rule"
                    " of a `custom_vjp`",
                    "name the inputs or outputs of the function where it is called",
                    related=(Related(*defvjp, "this makes it the forward rule"),),
                )


def _forward_rules(project: Project, module: Module) -> Iterator[tuple[ast.AST, ast.Call]]:
    """Yield the functions of a module that are forward rules, with the calls of `defvjp`."""
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
