"""RMT601: a policy saves the results of primitives that `jax_remat3` does not ask it about.

https://github.com/jax-ml/jax/pull/39432
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.names.scopes import FunctionNode
from remat_migrate.analysis.policies.decisions import ANY_OTHER, Answer, PolicyFunction
from remat_migrate.analysis.policies.jax_remat3 import CONSULTED, CONSULTED_SINCE, NEVER_ASKED
from remat_migrate.analysis.policies.values import (
    answer_of_function,
    function_of,
    origins,
    policy_places,
)
from remat_migrate.analysis.values.values import Function
from remat_migrate.rule import Confidence, Example, Finding

from .shared.example_uses import RESIDUALS_UNDER_REMAT3
from .shared.next_implementation import NextImplementationRule, judged_release

_ASKED = "`jax_remat3` asks a policy only about matrix products, convolutions, and named values;"
_NOT_ASKED = "`jax_remat3` ignores custom policies in jax 0.10 and 0.11; all values are recomputed"
_PARAMETERS = frozenset({"prim", "primitive"})

_HEAD = "import jax\nimport jax.numpy as jnp\n\n\n"
_F = """\
def f(x):
    return jnp.sin(jnp.tanh(x))


def loss(x):
    return jax.checkpoint(f, policy=%s)(x)
"""


class PolicyOfOtherPrimitives(NextImplementationRule):
    """## What it does
    Checks for functions used as policies that save the results of primitives other than matrix
    products, convolutions, and `checkpoint_name`: `lambda prim, *_, **__: prim.name == "tanh"`,
    `str(prim) != "all_gather"`. Also checks functions with the parameters `(prim, *_, **params)`.

    ## Why is this bad?
    Today JAX asks a policy about the result of nearly every operation. The next implementation,
    behind the flag `jax_remat3`, asks it only about `dot_general`, `conv_general_dilated`, and
    named values, and silently recomputes everything else that such a policy saved. Values and
    gradients stay the same; memory and time change. In jax 0.10 and 0.11 the flag ignores custom
    policies altogether.

    ## Fix
    Not fixed automatically. Name the values to save with `checkpoint_name`, and use a policy that
    saves these names.
    """

    code, name = "RMT601", "policy-of-other-primitives"

    wrong = [
        Example(
            _HEAD + _F % 'lambda prim, *_, **__: prim.name == "tanh"',
            use=RESIDUALS_UNDER_REMAT3,
            shows="assert kept in ([1], [1, 0]), kept\n",
        ),
        Example(
            _HEAD + _F % 'lambda p, *_, **__: str(p) != "all_gather"',
            use=RESIDUALS_UNDER_REMAT3,
            shows="assert kept[0] > 0 and kept[1:] in ([], [0]), kept\n",
        ),
    ]
    right = [
        Example(
            _HEAD
            + "from jax.ad_checkpoint import checkpoint_name\n\n"
            + 'keep = jax.checkpoint_policies.save_only_these_names("t")\n\n\n'
            + "def f(x):\n"
            + '    return jnp.sin(checkpoint_name(jnp.tanh(x), "t"))\n\n\n'
            + "def loss(x):\n    return jax.checkpoint(f, policy=keep)(x)\n",
            use=RESIDUALS_UNDER_REMAT3,
            holds="assert set(kept) == {1}, kept\n",
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each function that acts as such a policy."""
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
            return  # RMT403 reports a policy that saves everything
        policy = PolicyFunction(project, function)
        named = policy.primitives()
        message, confidence = _lost(policy, sorted(named - CONSULTED - NEVER_ASKED))
        if given and judged_release(project, function.module) < CONSULTED_SINCE:
            asked = (*CONSULTED, ANY_OTHER, *named - NEVER_ASKED)
            if any(policy.answer(name) is not Answer.COMPUTED_AGAIN for name in asked):
                message = message or _NOT_ASKED
        if message:
            args = function.node.args
            is_lambda = isinstance(function.node, ast.Lambda)
            shown = function.node if is_lambda else [*args.posonlyargs, *args.args][0]
            yield self.next_finding(
                project,
                function.module.location(shown),
                message,
                "name the values to save with `checkpoint_name` and save these names",
                confidence=confidence if given else "medium",
            )


def _lost(policy: PolicyFunction, named: list[str]) -> tuple[str, Confidence]:
    """Return what is no longer saved; empty if everything still is."""
    rest = policy.answer(ANY_OTHER)
    if rest is Answer.SAVED:
        return f"{_ASKED} all other values that this one saves are recomputed", "high"
    saved = [name for name in named if policy.answer(name) is Answer.SAVED]
    if saved:
        return (
            f"{_ASKED} what this one saves of {_listed(saved)} is recomputed",
            "high",
        )
    unsure = [name for name in named if policy.answer(name) is Answer.UNKNOWN]
    if unsure and rest is Answer.COMPUTED_AGAIN:
        return f"{_ASKED} what this one answers for {_listed(unsure)} has no effect", "medium"
    return "", "low"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _looks_like_a_policy(node: FunctionNode) -> bool:
    """Return whether a function has the parameters of a policy."""
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    return (
        len(positional) == 1
        and positional[0].arg in _PARAMETERS
        and args.vararg is not None
        and args.kwarg is not None
    )
