"""RMT602: a `prevent_cse` per argument cannot be combined with static arguments.

https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.names.expected_failures import expects_failure
from remat_migrate.analysis.policies.jax_remat3 import SOME_CSE_REFUSED_SINCE
from remat_migrate.analysis.sites.site import Option, options_in
from remat_migrate.analysis.values.values import Constant, Container
from remat_migrate.rule import Example, Fails, Finding

from .shared.next_implementation import NextImplementationRule, judged_release

_BLOCK = """\
from functools import partial

import jax
import jax.numpy as jnp


def loss(x, w):
    @partial(jax.checkpoint, prevent_cse=%s%s)
    def block(x, w%s):
        return jnp.sin(x * w) if double else x * w

    return block(x, w%s)
"""
_USE = """\
if hasattr(jax.config, "jax_remat3"):
    jax.config.update("jax_remat3", True)
slopes = jax.grad(loss, (0, 1))(1.0, 2.0)
"""


class PreventCseOfArguments(NextImplementationRule):
    """## What it does
    Checks for checkpoints that have static arguments and a `prevent_cse` per argument, such as
    `prevent_cse=(True, False)`.

    ## Why is this bad?
    Today the tuple refers to the non-static arguments. In the next implementation, behind the flag
    `jax_remat3`, the combination raises `NotImplementedError` since jax 0.11.1; before that
    `prevent_cse` had no effect there.

    ## Fix
    Not fixed automatically. Close over the static arguments, or pass one `prevent_cse` for all
    arguments.
    """

    code, name = "RMT602", "prevent-cse-of-arguments"

    wrong = [
        Example(
            _BLOCK % ("(True, False)", ", static_argnums=(2,)", ", double", ", True"),
            use=_USE,
            fails=Fails("NotImplementedError: non-bool prevent_cse", since="0.11.1"),
        ),
    ]
    right = [
        Example(
            _BLOCK.replace("def loss(x, w):", "def loss(x, w, double=True):")
            % ("(True, False)", "", "", ""),
            use=_USE,
            holds="assert [round(float(s), 4) for s in slopes] == [-0.8323, -0.4161]\n",
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each such `prevent_cse`."""
        if judged_release(project, module) < SOME_CSE_REFUSED_SINCE:
            return
        seen: set[ast.expr] = set()
        for option, site in options_in(project, module):
            if option.name != "prevent_cse" or option.value in seen:
                continue
            api = site.definition
            if api.counting != "function" or api.static_calls != "by-position":
                continue
            options = [site.arguments.get(name) for name in ("static_argnums", "static_argnames")]
            static = [one for one in options if one is not None and _names_any(project, one)]
            if not static or not _is_per_argument(project, option):
                continue
            if not expects_failure(module, option.value):
                seen.add(option.value)
                yield self.next_finding(
                    project,
                    module.location(option.value),
                    f"`jax_remat3` rejects a `prevent_cse` per argument with `{static[0].name}` and"
                    " raises `NotImplementedError`",
                    "close over the static arguments, or pass one `prevent_cse` for all arguments",
                    confidence="high" if site.certain else "medium",
                )


def _is_per_argument(project: Project, option: Option) -> bool:
    values = project.values(option.module, option.value)
    return bool(values) and all(
        isinstance(value, Container) and isinstance(value.node, ast.Tuple | ast.List)
        for value in values
    )


def _names_any(project: Project, option: Option) -> bool:
    """Return whether an option may name an argument."""
    for value in project.values(option.module, option.value):
        match value:
            case Container(node=ast.Tuple(elts=[]) | ast.List(elts=[])) | Constant(value=None):
                return False
    return True
