"""RMT101: `concrete=` was removed from the checkpoint functions.

`concrete=True` raises since jax 0.3.17 and `concrete=False` since 0.10.0; 0.11.0 removed the
keyword: https://docs.jax.dev/en/latest/jep/11830-new-remat-checkpoint.html
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from remat_migrate.api import Example, Finding, Fix, Module, Project, Related, Rule, Severity
from remat_migrate.api.code import EXPECTED, expects_failure
from remat_migrate.api.sites import APIS, ConcreteUse, concrete_uses

from .shared.fixes import migration_fix

# What the option raises from jax 0.3.17 and from 0.11.
_ERRORS = ("NotImplementedError", "TypeError")

_LOSS = """\
from functools import partial

import jax


@partial(jax.checkpoint, %s)
def block(x, is_training):
    if is_training:
        return 2 * x
    return x


def loss(x):
    return block(x, %s)
"""
_KEYWORD_ONLY = """\
from functools import partial

import jax


@partial(jax.checkpoint, concrete=True)
def block(x, *, is_training=False):
    if is_training:
        return 2 * x
    return x
"""
_CLOSED_OVER = """\
import jax


def block(x, *, is_training=False):
    @jax.checkpoint
    def checkpointed_block(x):
        if is_training:
            return 2 * x
        return x

    return checkpointed_block(x)
"""


class ConcreteOption(Rule):
    """## What it does
    Checks for `concrete=` on any function of the checkpoint family: in a call, in a
    `functools.partial` under any alias, in a dict that is unpacked, or passed by position. Also
    reports a `concrete` that may reach such a function through a wrapper, decorator factory, or
    class that passes `**options` on, or through a dict that is filled step by step.

    ## Why is this bad?
    The option let a checkpointed function use the concrete values of its arguments, mostly to
    branch on a flag such as `is_training`. `concrete=True` raises an exception since jax 0.3.17,
    and `concrete=False` since 0.10.0.

    ## Fix
    Applies the first of these that keeps the behavior:

    1. If no argument must be concrete at trace time, drops the option. `jax.numpy` operations whose
       results are needed at trace time move under `jax.ensure_compile_time_eval`, here and in 2.
    2. If every call is known and can pass the arguments that must be concrete by position, marks
       them static with `static_argnums` and updates the calls.
    3. Otherwise keeps the signature and closes over the arguments that must be concrete: the body
       of a `def` that is decorated, or assigned to its own name, moves into an inner checkpointed
       function of the other arguments. A second name for a function becomes a function that
       closes over all its arguments.
    4. Otherwise changes nothing. The finding gives the reason and the code to write.
    5. If a value that must be concrete is an array or is differentiated, changes nothing. The
       finding suggests an alternative, such as `jax.lax.cond` or `jnp.where`. Nothing is changed,
       either, where the option may reach another function: `remat` in
       `remat = jax.checkpoint if flag else no_remat` may use it.
    """

    code, name = "RMT101", "concrete-option"
    since = "0.3.17"
    url = "https://docs.jax.dev/en/latest/jep/11830-new-remat-checkpoint.html"

    wrong = [
        Example(
            _LOSS % ("concrete=True", "is_training=True"),
            _LOSS % ("static_argnums=(1,)", "True"),
        ),
        Example(_KEYWORD_ONLY, _CLOSED_OVER),
        Example(
            "import jax\n\ncheckpointed = jax.checkpoint(abs, concrete=False)\n",
            "import jax\n\ncheckpointed = jax.checkpoint(abs)\n",
        ),
        # Branches on a value that is differentiated: not fixed.
        Example(
            "import jax\n\n\n"
            "@jax.grad\n"
            "def slope(x):\n"
            "    return jax.checkpoint(lambda y: y if y > 0 else -y, concrete=True)(x)\n"
        ),
    ]
    right = [
        "import jax\n\nf = jax.checkpoint(lambda x, n: x**n, static_argnums=(1,))\n",
        "import netket\n\nspin = netket.operator.spin.sigmax(0)\nspin.transpose(concrete=True)\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each `concrete=` in the module."""
        for use in concrete_uses(project, module):
            severity = _severity(use, project)
            if severity is not None:
                yield self._found(use, project, severity)

    def _found(self, use: ConcreteUse, project: Project, severity: Severity) -> Finding:
        fix, related, reason = concrete_fix(use, project)
        source, span = use.module.source, use.span
        if use.site is not None:
            related = (Related(source, span, "the option is set here"), *related)
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


def concrete_fix(use: ConcreteUse, project: Project) -> tuple[Fix, tuple[Related, ...], str]:
    """Return the fix of one `concrete`, the locations that explain it, and what it breaks."""
    from remat_migrate.api.rewrites import drop, migrate

    reason = use.reason
    if expects_failure(use.module, use.option.value, *_ERRORS):
        reason = EXPECTED
    if reason:
        return Fix.manual(reason), (), reason
    return migration_fix(partial(drop if use.value is False else migrate, project, use))


def _severity(use: ConcreteUse, project: Project) -> Severity | None:
    """Return how much the option matters in the target version, or None if it is supported."""
    version = project.jax_version(use.module.source.path)
    if version < (0, 3, 16):
        return None
    if use.value is False:
        fails = use.definition.concrete_false_fails
        return "error" if fails is not None and version >= fails else "warning"
    return "error"


def _message(use: ConcreteUse) -> str:
    api = f"`{use.definition.name}`"
    if use.value is not False and use.definition.name not in APIS:
        return f"{api} passes `concrete=` to a checkpoint, which takes none since jax 0.3.17"
    if use.value is not False:
        return f"{api} no longer accepts `concrete=` (removed in jax 0.3.17)"
    fails = use.definition.concrete_false_fails
    if fails is None:
        return f"`concrete=False` of {api} has no effect"
    return f"{api} rejects `concrete=False` since jax {'.'.join(map(str, fails[:2]))}"
