"""RMT602: `prevent_cse` for single arguments and static arguments exclude each other.

https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.names.expected_failures import expects_failure
from remat_migrate.analysis.policies.jax_remat3 import SOME_CSE_REFUSED_SINCE
from remat_migrate.analysis.sites.site import Option, sites_of
from remat_migrate.analysis.values.values import Constant, Container
from remat_migrate.rule import Example, Fails, Finding

from .readiness import Readiness, because, judged_by, severity

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


class PreventCseOfArguments(Readiness):
    """## What it does

    Finds checkpoints with a `prevent_cse` for each argument, `prevent_cse=(True, False)`, that have
    static arguments.

    ## Why is this bad?

    Today the tuple speaks of the arguments that are not static. In the next implementation, behind
    the flag `jax_remat3`, the two options together raise NotImplementedError since jax 0.11.1;
    before it `prevent_cse` had no effect there.

    ## Fix

    None: close over what is static, or give one `prevent_cse` for all arguments.
    """

    code: ClassVar[str] = "RMT602"
    name: ClassVar[str] = "prevent-cse-of-arguments"

    wrong: ClassVar[list[Example]] = [
        Example(
            _BLOCK % ("(True, False)", ", static_argnums=(2,)", ", double", ", True"),
            use=_USE,
            fails=Fails("NotImplementedError: non-bool prevent_cse", since="0.11.1"),
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(
            _BLOCK.replace("def loss(x, w):", "def loss(x, w, double=True):")
            % ("(True, False)", "", "", ""),
            use=_USE,
            holds="assert [round(float(s), 4) for s in slopes] == [-0.8323, -0.4161]\n",
        ),
        Example(
            _BLOCK % ("True", ", static_argnums=(2,)", ", double", ", True"),
            use=_USE,
            holds="assert [round(float(s), 4) for s in slopes] == [-0.8323, -0.4161]\n",
        ),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each such `prevent_cse`."""
        if judged_by(project) < SOME_CSE_REFUSED_SINCE:
            return
        seen: set[ast.expr] = set()
        for site in sites_of(project):
            option = site.arguments.get("prevent_cse")
            if option is None or option.module is not module or option.value in seen:
                continue
            api = site.definition
            if api.counting != "function" or api.static_calls != "by-position":
                continue
            static = [site.arguments.get(name) for name in ("static_argnums", "static_argnames")]
            given = [one for one in static if one is not None and _names_some(project, one)]
            if not given or not _is_of_arguments(project, option):
                continue
            if expects_failure(module, option.value):
                continue
            seen.add(option.value)
            yield self.finding(
                module.source,
                module.span(option.value),
                f"from `jax_remat3` on `prevent_cse` for single arguments and `{given[0].name}`"
                " together raise NotImplementedError",
                severity=severity(project),
                confidence="high" if site.certain else "medium",
                reason=because(
                    "close over what is static, or give one `prevent_cse` for all arguments"
                ),
            )


def _is_of_arguments(project: Project, option: Option) -> bool:
    values = project.values(option.module, option.value)
    return bool(values) and all(
        isinstance(value, Container) and isinstance(value.node, ast.Tuple | ast.List)
        for value in values
    )


def _names_some(project: Project, option: Option) -> bool:
    """Whether an option names at least one argument, as far as it is seen."""
    values = project.values(option.module, option.value)
    for value in values:
        match value:
            case Container(node=ast.Tuple(elts=parts) | ast.List(elts=parts)) if not parts:
                return False
            case Constant(value=None):
                return False
    return True
