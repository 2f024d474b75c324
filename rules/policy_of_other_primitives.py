"""RMT601: under `jax_remat3` a policy is asked about products, convolutions and names alone.

https://github.com/jax-ml/jax/pull/39432
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.names.scopes import FunctionNode
from remat_migrate.analysis.policies.decisions import ANY_OTHER, Answer, Policy
from remat_migrate.analysis.policies.jax_remat3 import CONSULTED, CONSULTED_SINCE, NEVER_ASKED
from remat_migrate.analysis.policies.values import (
    answer_of_function,
    function_of,
    origins,
    policy_places,
)
from remat_migrate.analysis.values.values import Function
from remat_migrate.rule import Confidence, Example, Finding

from .readiness import Readiness, because, judged_by, severity

_ASKED = (
    "from `jax_remat3` on a policy is asked about products, convolutions and named values alone"
)
_NOT_ASKED = "under `jax_remat3` jax 0.10 and 0.11 ask no function of one's own as a policy"
_PARAMETERS = frozenset({"prim", "primitive"})

_HEAD = "import jax\nimport jax.numpy as jnp\n\n\n"
_F = """\
def f(x):
    return jnp.sin(jnp.tanh(x))


def g(x):
    return jax.checkpoint(f, policy=%s)(x)
"""
_USE = """\
from jax._src.ad_checkpoint import saved_residuals


def count():
    return sum("argument" not in text for _, text in saved_residuals(g, 1.0))


kept = [count()]
if hasattr(jax.config, "jax_remat3"):
    jax.config.update("jax_remat3", True)
    kept.append(count())
"""


class PolicyOfOtherPrimitives(Readiness):
    """## What it does

    Finds functions given as policies that save the results of other primitives than matrix
    products, convolutions and `checkpoint_name`: `lambda prim, *_, **__: prim.name == "tanh"`,
    `str(prim) != "all_gather"`; and functions with the parameters `(prim, *_, **params)` that do.

    ## Why is this bad?

    Today a policy is asked about the result of nearly every operation. The next implementation,
    behind the flag `jax_remat3`, asks it about `dot_general`, `conv_general_dilated` and named
    values, and computes all else again: what such a policy saved is not saved any more, without a
    word. Values and gradients are the same; memory and time are not. In jax 0.10 and 0.11 the flag
    makes no function of one's own count at all.

    ## Fix

    None: name what shall be saved by `checkpoint_name`, and let the policy save that name.
    """

    code: ClassVar[str] = "RMT601"
    name: ClassVar[str] = "policy-of-other-primitives"

    wrong: ClassVar[list[Example]] = [
        Example(
            _HEAD + _F % 'lambda prim, *_, **__: prim.name == "tanh"',
            use=_USE,
            shows="assert kept in ([1], [1, 0]), kept\n",
        ),
        Example(
            _HEAD + "def kept_here(prim, *operands, **params):\n"
            "    name = str(prim)\n"
            '    if name in ("exp", "tanh"):\n'
            "        return True\n"
            "    return jax.checkpoint_policies.dots_saveable(prim, *operands, **params)\n\n\n"
            + _F
            % "kept_here",
            use=_USE,
            shows="assert kept in ([1], [1, 0]), kept\n",
        ),
        Example(
            _HEAD + _F % 'lambda p, *_, **__: str(p) != "all_gather"',
            use=_USE,
            shows="assert kept[0] > 0 and kept[1:] in ([], [0]), kept\n",
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(
            _HEAD
            + "from jax.ad_checkpoint import checkpoint_name\n\n"
            + 'keep = jax.checkpoint_policies.save_only_these_names("t")\n\n\n'
            + "def f(x):\n"
            + '    return jnp.sin(checkpoint_name(jnp.tanh(x), "t"))\n\n\n'
            + "def g(x):\n    return jax.checkpoint(f, policy=keep)(x)\n",
            use=_USE,
            holds="assert set(kept) == {1}, kept\n",
        ),
        _HEAD
        + "def policy(prim, *_, **params):\n"
        + '    if prim.name == "name":\n'
        + '        return params["name"].startswith("block")\n'
        + "    return prim is jax.lax.dot_general_p\n\n\n"
        + "g = jax.checkpoint(jnp.sin, policy=policy)\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each function."""
        seen: set[FunctionNode] = set()
        for place in policy_places(project, module):
            for origin in origins(project, module, place.node):
                function = function_of(project, origin)
                if function is not None and function.module is module:
                    seen.add(function.node)
                    yield from self._judged(function, project, given=True)
        for node in module.nodes:
            if isinstance(node, FunctionNode) and node not in seen and _looks_like_a_policy(node):
                yield from self._judged(Function(module, node), project, given=False)

    def _judged(self, function: Function, project: Project, *, given: bool) -> Iterator[Finding]:
        if isinstance(answer_of_function(function), bool):
            return  # that it saves everything is said elsewhere; nothing is lost with nothing
        policy = Policy(project, function)
        named = policy.primitives()
        message, confidence = _lost(policy, sorted(named - CONSULTED - NEVER_ASKED))
        if given and judged_by(project) < CONSULTED_SINCE:
            asked = (*CONSULTED, ANY_OTHER, *named - NEVER_ASKED)
            if any(policy.answer(name) is not Answer.COMPUTED_AGAIN for name in asked):
                message = message or f"{_NOT_ASKED}: all is computed again"
        if not message:
            return
        args = function.node.args
        lambda_ = isinstance(function.node, ast.Lambda)
        shown = function.node if lambda_ else [*args.posonlyargs, *args.args][0]
        yield self.finding(
            function.module.source,
            function.module.span(shown),
            message,
            severity=severity(project),
            confidence=confidence if given else "medium",
            reason=because("name by `checkpoint_name` what shall be saved, and save that name"),
        )


def _lost(policy: Policy, named: list[str]) -> tuple[str, Confidence]:
    """What is not saved any more; "" where nothing is."""
    rest = policy.answer(ANY_OTHER)
    if rest is Answer.SAVED:
        return f"{_ASKED}: all else that this one saves is computed again", "high"
    saved = [name for name in named if policy.answer(name) is Answer.SAVED]
    if saved:
        return f"{_ASKED}: what this one saves of {_listed(saved)} is computed again", "high"
    unsure = [name for name in named if policy.answer(name) is Answer.UNKNOWN]
    if unsure and rest is Answer.COMPUTED_AGAIN:
        return f"{_ASKED}: what this one says of {_listed(unsure)} has no effect", "medium"
    return "", "low"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _looks_like_a_policy(node: FunctionNode) -> bool:
    """Whether a function takes what a policy takes, wherever it is given as one."""
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    return (
        len(positional) == 1
        and positional[0].arg in _PARAMETERS
        and args.vararg is not None
        and args.kwarg is not None
    )
