"""RMT206: `static_argnames=` of a checkpoint, which is ignored or refused.

https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.names.expected_failures import expects_failure
from remat_migrate.analysis.policies.jax_remat3 import uses_next_implementation
from remat_migrate.analysis.sites.concrete_options import ConcreteUse
from remat_migrate.analysis.sites.site import Option, Site, sites_of
from remat_migrate.analysis.statics.static_names import named_statics
from remat_migrate.libraries.apis import Api
from remat_migrate.rewrite import Refused
from remat_migrate.rule import Example, Fails, Finding, Fix, Related, Rule, Safety, Severity
from remat_migrate.text import Span

_HEAD = """\
%s
import jax
import jax.numpy as jnp


"""
_BLOCK = """\
@partial(jax.%s)
def block(x, is_training=False):
    return 2 * x if is_training else x


def loss(x):
    return jnp.sum(block(x, %sTrue))
"""
_KEYWORD = """\
@partial(jax.checkpoint, static_argnames="is_training")
def block(x, *, is_training=False):
    return 2 * x if is_training else x


"""
_CLOSED = """\
def block(x, *, is_training=False):
    @jax.checkpoint
    def checkpointed_block(x):
        return 2 * x if is_training else x

    return checkpointed_block(x)


"""
_LOSS = "def loss(x):\n    return jnp.sum(block(x, is_training=True))\n"
_PARTIAL = "from functools import partial\n"
_USE = "value, gradient = jax.value_and_grad(loss)(jnp.ones(3))\n"
_HOLDS = "assert value == 6 and (gradient == 2).all()\n"
_IGNORED = Fails("TypeError: .*static_argnames|TracerBoolConversionError")


class StaticArgnamesIgnored(Rule):
    """
    ## What it does
    Finds `static_argnames=` on a function of the checkpoint family.

    ## Why is this bad?
    `jax.checkpoint` accepts the option since jax 0.10.2, and ignores it unless `jax_remat3` is on:
    the arguments are traced. Earlier releases, `jax.remat`, Haiku and Flax refuse it with a
    `TypeError`.

    ## Fix
    The arguments are named in `static_argnums`, and each call passes them by position. Where that
    cannot be, the function closes over them.
    """

    code: ClassVar[str] = "RMT206"
    name: ClassVar[str] = "static-argnames-ignored"
    url: ClassVar[str] = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"

    wrong: ClassVar[list[Example]] = [
        Example(
            _HEAD % _PARTIAL
            + _BLOCK % ('checkpoint, static_argnames=("is_training",)', "is_training="),
            _HEAD % _PARTIAL + _BLOCK % ("checkpoint, static_argnums=(1,)", ""),
            use=_USE,
            fails=_IGNORED,
            holds=_HOLDS,
        ),
        Example(
            _HEAD % _PARTIAL + _BLOCK % ('remat, static_argnames="is_training"', ""),
            _HEAD % _PARTIAL + _BLOCK % ("remat, static_argnums=(1,)", ""),
            use=_USE,
            fails=Fails("TypeError: .*static_argnames"),
            holds=_HOLDS,
        ),
        Example(
            _HEAD % _PARTIAL + _KEYWORD + _LOSS,
            (_HEAD % "").lstrip("\n") + _CLOSED + _LOSS,
            use=_USE,
            fails=_IGNORED,
            holds=_HOLDS,
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        Example(
            _HEAD % _PARTIAL + _BLOCK % ("checkpoint, static_argnums=(1,)", ""),
            use=_USE,
            holds=_HOLDS,
        ),
        _HEAD % _PARTIAL + _BLOCK % ('jit, static_argnames="is_training"', "is_training="),
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each `static_argnames` that is written in the module."""
        found: dict[ast.expr, tuple[Option, list[Site]]] = {}
        for site in sites_of(project):
            option = site.arguments.get("static_argnames")
            if option is None or option.module is not module:
                continue
            api = site.definition
            if api.static_option is not None and api.static_calls != "unknown":
                found.setdefault(option.value, (option, []))[1].append(site)
        for option, sites in found.values():
            if expects_failure(module, option.value):
                continue
            message, severity = _message(sites[0].definition, project)
            if message:
                yield self._found(option, sites, project, message, severity)

    def _found(
        self,
        option: Option,
        sites: list[Site],
        project: Project,
        message: str,
        severity: Severity,
    ) -> Finding:
        from remat_migrate.rewrite.concrete import migrate

        module, reason = option.module, ""
        span: Span = module.span(option.keyword or option.value)
        fix: Fix | None = None
        related: tuple[Related, ...] = ()
        applied = tuple(s for s in sites if s.application is not None)
        use = ConcreteUse(option, sites[0].definition, applied, True, span)
        try:
            made = migrate(project, use, named_statics)
            fix = Fix(made.title, Safety.SAFE, made.changes)
            related = tuple(
                Related(n.module.source, n.module.span(n.node), n.message) for n in made.notes
            )
        except Refused as refused:
            reason = refused.reason.replace("`concrete`", "`static_argnames`")
        return self.finding(
            module.source,
            span,
            message,
            severity=severity,
            fix=fix or Fix(reason, Safety.MANUAL),
            related=related,
            reason=reason,
        )


def _message(api: Api, project: Project) -> tuple[str, Severity]:
    """What becomes of the option in the target version; "" where it works."""
    since = api.argnames_since
    if since is None or project.settings.jax_version < since:
        return f"{api.name} does not take `static_argnames`: a TypeError", "error"
    if uses_next_implementation(project):
        return "", "note"
    return (
        f"`static_argnames` of {api.name} is ignored unless `jax_remat3` is on: the arguments are"
        " traced",
        "warning",
    )
