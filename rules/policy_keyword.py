"""RMT401: a checkpoint gets its policy under the wrong keyword."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.api import Example, Fails, Finding, Fix, Module, Project, Rule, Safety, Site
from remat_migrate.api.changes import Rename
from remat_migrate.api.code import Partial, expects_failure
from remat_migrate.api.policies import POLICY_OPTION, TAKES_POLICY, is_typo
from remat_migrate.api.sites import Option, options_in

_CALL = """\
import jax

f = jax.checkpoint(jax.numpy.sin, %s=jax.checkpoint_policies.dots_saveable)
"""


class PolicyKeyword(Rule):
    """## What it does
    Checks for options of the checkpoint family that are meant to be `policy=`:
    `checkpoint_policy=`, `save_policy=`, `policies=`, and typos.

    ## Why is this bad?
    The functions accept no other keywords: the call raises `TypeError`.

    ## Fix
    Renames the option to `policy=`.
    """

    code, name = "RMT401", "policy-keyword"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"
    wrong = [
        Example(
            _CALL % "checkpoint_policy",
            _CALL % "policy",
            use="slope = jax.grad(f)(0.0)\n",
            fails=Fails("TypeError: .*unexpected keyword argument 'checkpoint_policy'"),
            holds="assert slope == 1.0\n",
        ),
    ]
    right = ["def remat(f, save_policy):\n    return f\n\n\nf = remat(print, save_policy=1)\n"]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each misnamed policy option in the module."""
        seen: set[ast.expr] = set()
        for option, site in options_in(project, module):
            if site.api not in TAKES_POLICY or not site.certain:
                continue  # a wrapper of the project has its own keywords
            if option.value in seen or not means_policy(option.name):
                continue
            seen.add(option.value)
            if not expects_failure(module, option.value):
                yield self.finding(
                    *module.location(option.keyword or option.value),
                    f"`{site.api}` does not accept `{option.name}=`; the option is"
                    f" `{POLICY_OPTION}=`",
                    fix=_fix(site, option),
                )


def _fix(site: Site, option: Option) -> Fix:
    if POLICY_OPTION in site.arguments:
        return Fix.manual(f"`{POLICY_OPTION}` is also passed; keep one of them")
    if option.keyword is None or not _is_passed_here(site, option):
        return Fix.manual(f"rename it to `{POLICY_OPTION}`; other code may share these options")
    change = Rename(option.module, option.keyword, POLICY_OPTION)
    return Fix(f"rename it to `{POLICY_OPTION}=`", Safety.SAFE, (change,))


def means_policy(name: str) -> bool:
    """Return whether a keyword is meant to be `policy`."""
    plain = name.lower()
    if name == POLICY_OPTION:
        return False
    return "policy" in plain or "policies" in plain or is_typo(plain, POLICY_OPTION)


def _is_passed_here(site: Site, option: Option) -> bool:
    """Return whether an option is in a call of the Api or of a partial of it."""
    calls: list[ast.expr | ast.Dict] = []
    if site.application is not None:
        calls.append(site.application)
    callee = site.callee
    while isinstance(callee, Partial):
        calls.append(callee.call)
        callee = callee.func
    return option.call in calls
