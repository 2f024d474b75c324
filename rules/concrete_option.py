"""RMT101: the `concrete=` option of the checkpoint family is gone.

`concrete=True` raises since jax 0.3.17, `concrete=False` since 0.10.0, and from 0.11.0 the keyword
does not exist: https://docs.jax.dev/en/latest/jep/11830-new-remat-checkpoint.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.names.expected_failures import EXPECTED, expects_failure
from remat_migrate.analysis.sites.concrete_options import ConcreteUse, concrete_uses
from remat_migrate.rewrite import Refused
from remat_migrate.rule import Example, Finding, Fix, Related, Rule, Safety, Severity

# What the option raises: from jax 0.3.17, and from 0.11.
_ERRORS = ("NotImplementedError", "TypeError")


class ConcreteOption(Rule):
    """
    ## What it does
    Finds `concrete=` on any function of the checkpoint family: written in the call, in a
    `functools.partial` under any alias, in a dict that is spread, or passed by position.

    ## Why is this bad?
    The option let a checkpointed function see the values of its arguments, mostly to branch on a
    flag such as `is_training`. `concrete=True` raises since jax 0.3.17, even `concrete=False` since
    0.10.0.

    ## Fix
    The first of these that keeps the meaning:

    1. No argument's value is needed by Python: the option goes.
    2. The needed arguments can be passed by position and every call is known: they are named in
       `static_argnums`, and each call passes them by position. Where Python needs the result of a
       `jax.numpy` operation on them, that is computed under `jax.ensure_compile_time_eval`.
    3. Otherwise the function keeps its signature and closes over what must be concrete: an inner
       checkpointed function takes the other arguments.
    4. Where it cannot be told what Python needs, because the function cannot be seen or is one of
       several, it closes over all arguments: a checkpoint differentiates what it closes over.
    5. A needed value is an array, or a gradient is taken of it: nothing is changed, and the finding
       says what to write instead (`jax.lax.cond`, `jnp.where`).
    """

    code: ClassVar[str] = "RMT101"
    name: ClassVar[str] = "concrete-option"
    since: ClassVar[str] = "0.3.17"
    url: ClassVar[str] = "https://docs.jax.dev/en/latest/jep/11830-new-remat-checkpoint.html"

    wrong: ClassVar[list[Example]] = [
        Example(
            """\
from functools import partial

import jax


@partial(jax.checkpoint, concrete=True)
def block(x, is_training):
    if is_training:
        return 2 * x
    return x


def loss(x):
    return block(x, is_training=True)
""",
            """\
from functools import partial

import jax


@partial(jax.checkpoint, static_argnums=(1,))
def block(x, is_training):
    if is_training:
        return 2 * x
    return x


def loss(x):
    return block(x, True)
""",
        ),
        Example(
            """\
from functools import partial

import jax


@partial(jax.checkpoint, concrete=True)
def block(x, *, is_training=False):
    if is_training:
        return 2 * x
    return x
""",
            """\
import jax


def block(x, *, is_training=False):
    @jax.checkpoint
    def checkpointed_block(x):
        if is_training:
            return 2 * x
        return x

    return checkpointed_block(x)
""",
        ),
        Example(
            """\
import jax


def square(x):
    return x * x


checkpointed = jax.checkpoint(square, concrete=False)
""",
            """\
import jax


def square(x):
    return x * x


checkpointed = jax.checkpoint(square)
""",
        ),
        # A branch on a value of which a gradient is taken: nothing is changed.
        Example(
            """\
import jax


@jax.grad
def slope(x):
    return jax.checkpoint(lambda y: y if y > 0 else -y, concrete=True)(x)
"""
        ),
    ]
    right: ClassVar[list[Example | str]] = [
        "import jax\n\nf = jax.checkpoint(lambda x, n: x**n, static_argnums=(1,))\n",
        "import netket\n\nspin = netket.operator.spin.sigmax(0)\nspin.transpose(concrete=True)\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each `concrete=` that is written in the module."""
        for use in concrete_uses(project, module):
            severity = _severity(use, project)
            if severity is not None:
                yield self._found(use, project, severity)

    def _found(self, use: ConcreteUse, project: Project, severity: Severity) -> Finding:
        fix, related, reason = migrated(use, project)
        source, span = use.module.source, use.span
        if use.site is not None:
            related = (Related(source, span, "the option is written here"), *related)
            source, span = use.site.module.source, use.site.span
        return self.finding(
            source,
            span,
            _message(use),
            severity=severity,
            fix=fix,
            related=related,
            reason=reason,
        )


def migrated(use: ConcreteUse, project: Project) -> tuple[Fix, tuple[Related, ...], str]:
    """The fix of one `concrete`, the places that explain it, and why there is none."""
    from remat_migrate.rewrite.concrete import drop, migrate

    related: tuple[Related, ...] = ()
    reason = use.reason
    if expects_failure(use.module, use.option.value, *_ERRORS):
        reason = EXPECTED
    if not reason:
        try:
            migration = drop(project, use) if use.value is False else migrate(project, use)
            related = tuple(
                Related(n.module.source, n.module.span(n.node), n.message) for n in migration.notes
            )
            safety = Safety.UNSAFE if migration.breaks else Safety.SAFE
            return Fix(migration.title, safety, migration.changes), related, migration.breaks
        except Refused as refused:
            reason = refused.reason
            if refused.module is not None and isinstance(refused.node, ast.expr | ast.arg):
                span = refused.module.source.span(refused.node)
                related = (Related(refused.module.source, span, refused.label),)
    return Fix(reason, Safety.MANUAL), related, reason


def _severity(use: ConcreteUse, project: Project) -> Severity | None:
    """What the option does in the target version: nothing, a warning, an error."""
    version = project.settings.jax_version
    if version < (0, 3, 16):
        return None
    if use.value is False:
        fails = use.definition.concrete_false_fails
        return "error" if fails is not None and version >= fails else "warning"
    return "error"


def _message(use: ConcreteUse) -> str:
    if use.value is False:
        fails = use.definition.concrete_false_fails
        since = ".".join(map(str, fails[:2])) if fails else ""
        return f"`concrete=False` of {use.definition.name} " + (
            f"is an error since jax {since}" if since else "does nothing"
        )
    return f"`concrete=` is gone from {use.definition.name} since jax 0.3.17"
