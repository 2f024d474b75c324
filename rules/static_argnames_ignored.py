"""RMT206: `static_argnames=` of a checkpoint is ignored or rejected."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from remat_migrate.api import Example, Fails, Finding, Module, Project, Rule, Severity, Site
from remat_migrate.api.code import expects_failure
from remat_migrate.api.policies import uses_next_implementation
from remat_migrate.api.sites import Api, ConcreteUse, Option, options_in

from .shared.example_uses import BLOCK, DOUBLED, GRADIENT
from .shared.fixes import migration_fix

_block = partial(
    BLOCK.format, parameters="x, is_training=False", body="return 2 * x if is_training else x"
)


class StaticArgnamesIgnored(Rule):
    """## What it does
    Checks for `static_argnames=` on a function of the checkpoint family.

    ## Why is this bad?
    `jax.checkpoint` accepts the option since jax 0.10.2 but ignores it unless `jax_remat3` is on,
    so the arguments are traced. Earlier releases, `jax.remat`, Haiku, and Flax raise `TypeError`.

    ## Fix
    Marks the arguments that must be concrete static with `static_argnums` and passes them by
    position. If that is not possible, the function closes over them. Other arguments are traced.
    """

    code, name = "RMT206", "static-argnames-ignored"
    url = "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html"

    wrong = [
        Example(
            _block(options='static_argnames=("is_training",)', arguments="x, is_training=True"),
            _block(options="static_argnums=(1,)", arguments="x, True"),
            use=GRADIENT,
            fails=Fails("TypeError: .*static_argnames|TracerBoolConversionError"),
            holds=DOUBLED,
        ),
    ]
    right = [wrong[0].before.replace("checkpoint", "jit")]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each `static_argnames` in the module."""
        found: dict[ast.expr, tuple[Option, list[Site]]] = {}
        for option, site in options_in(project, module):
            if option.name != "static_argnames":
                continue
            api = site.definition
            if api.static_option is not None and api.static_calls != "unknown":
                found.setdefault(option.value, (option, []))[1].append(site)
        for option, sites in found.values():
            message, severity = _message(sites[0].definition, project, module)
            if message and not expects_failure(module, option.value):
                yield self._found(option, sites, project, message, severity)

    def _found(
        self, option: Option, sites: list[Site], project: Project, message: str, severity: Severity
    ) -> Finding:
        from remat_migrate.api.rewrites import migrate

        location = option.module.location(option.keyword or option.value)
        applied = tuple(site for site in sites if site.application is not None)
        use = ConcreteUse(option, sites[0].definition, applied, True, location[1])
        fix, related, _ = migration_fix(partial(migrate, project, use))
        fix = replace(fix, title=fix.title.replace("`concrete`", "`static_argnames`"))
        return self.finding(*location, message, severity=severity, fix=fix, related=related)


def _message(api: Api, project: Project, module: Module) -> tuple[str, Severity]:
    """Return what the target version does with the option; empty if it supports it."""
    since = api.argnames_since
    if since is None or project.jax_version(module.source.path) < since:
        return f"`{api.name}` does not accept `static_argnames` and raises `TypeError`", "error"
    if uses_next_implementation(project):
        return "", "note"
    return (
        f"`{api.name}` ignores `static_argnames` unless `jax_remat3` is on; the arguments are"
        " traced",
        "warning",
    )
