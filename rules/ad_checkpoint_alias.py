"""RMT103: `jax.ad_checkpoint.checkpoint` and `.remat` were removed.

Deprecated in jax 0.8.2, removed in 0.10.0: https://docs.jax.dev/en/latest/changelog.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.api import Example, Fails, Finding, Fix, Module, Project, Rule
from remat_migrate.api.code import EXPECTED, expects_failure, suppressed_at

from .shared.ad_checkpoint_uses import (
    Use,
    find_uses,
    is_caught,
    reads_without_import,
    sites_with_name,
)

DEPRECATED_IN, REMOVED_IN = (0, 8, 2), (0, 10, 0)
_ERRORS = ("AttributeError", "ImportError", "ModuleNotFoundError")


class AdCheckpointAlias(Rule):
    """## What it does
    Checks for `jax.ad_checkpoint.checkpoint` and `jax.ad_checkpoint.remat`: imported by name, read
    as an attribute under any alias, or looked up with `getattr`. Also checks for reads of
    `jax.ad_checkpoint` where only `jax` is imported.

    ## Why is this bad?
    They were aliases of `jax.checkpoint` and `jax.remat`. jax 0.8.2 deprecated them; from 0.10.0
    they raise `AttributeError` or `ImportError`. The rest of `jax.ad_checkpoint` stays:
    `checkpoint_name`, `checkpoint_policies`, `print_saved_residuals`.

    `import jax` does not import `jax.ad_checkpoint`: `jax.ad_checkpoint.checkpoint_name` raises
    `AttributeError` unless some package has imported the module.

    ## Fix
    Imports the name from `jax`, splitting an import that also imports names that stay, or writes
    `jax.checkpoint`; adds `import jax.ad_checkpoint`. Changes nothing in a `try` that handles a
    version of JAX without the name.
    """

    code, name = "RMT103", "ad-checkpoint-alias"
    words = ("jax.ad_checkpoint",)
    since = "0.10.0"
    url = "https://docs.jax.dev/en/latest/changelog.html"
    wrong = [
        Example(
            "from jax.ad_checkpoint import checkpoint as ckpt\n\nf = ckpt(print)\n",
            "from jax import checkpoint as ckpt\n\nf = ckpt(print)\n",
        ),
        Example(
            "from jax.ad_checkpoint import checkpoint_name, remat\n\nf = remat(checkpoint_name)\n",
            "from jax import remat\n"
            "from jax.ad_checkpoint import checkpoint_name\n\nf = remat(checkpoint_name)\n",
        ),
        Example(
            "import jax.ad_checkpoint\n\nf = jax.ad_checkpoint.checkpoint(print)\n",
            "import jax.ad_checkpoint\n\nf = jax.checkpoint(print)\n",
        ),
        Example(
            "import jax\n\nname = jax.ad_checkpoint.checkpoint_name\n",
            "import jax\nimport jax.ad_checkpoint\n\nname = jax.ad_checkpoint.checkpoint_name\n",
            fails=Fails("AttributeError: module 'jax' has no attribute 'ad_checkpoint'"),
        ),
        Example(
            "try:\n"
            "    from jax.ad_checkpoint import checkpoint\n"
            "except ImportError:\n"
            "    from jax import checkpoint\n",
        ),
    ]
    right = [
        "from jax.ad_checkpoint import checkpoint_name, checkpoint_policies\n",
        "from jax._src.ad_checkpoint import checkpoint, remat\n",
        '"""Formerly jax.ad_checkpoint.checkpoint."""\n',
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each import of a removed name and each read of one."""
        version = project.jax_version(module.source.path)
        if version < DEPRECATED_IN:
            return
        yield from self._not_imported(module, project)
        uses = find_uses(module, project)
        if not uses:
            return
        from .shared.ad_checkpoint_fixes import fixes_of

        is_suppressed = suppressed_at(module.source, self.code, python=True)
        reasons = {use: use.reason or _obstacle(module, use) for use in uses}
        fixable = (u for u in uses if not reasons[u] and not is_suppressed(u.span.start))
        fixes = fixes_of(module, project, fixable)
        is_removed = version >= REMOVED_IN
        since = "removed in jax 0.10" if is_removed else "deprecated since jax 0.8.2"
        for use in uses:
            works = not is_removed or is_caught(module, use.node)
            yield self.finding(
                module.source,
                use.span,
                f"`jax.ad_checkpoint.{use.name}` {'was' if is_removed else 'is'} {since}",
                severity="warning" if works else "error",
                confidence="high" if use.certain else "medium",
                fix=fixes.get(use) or Fix.manual(f"use `jax.{use.name}`"),
                reason=reasons[use],
                sites=sites_with_name(module, project, use.name),
            )

    def _not_imported(self, module: Module, project: Project) -> Iterator[Finding]:
        for package in reads_without_import(module, project):
            from .shared.ad_checkpoint_fixes import import_fix

            if not expects_failure(module, package, *_ERRORS):
                yield self.finding(
                    *module.location(package),
                    "`jax.ad_checkpoint` is never imported; `import jax` does not import it",
                    confidence="medium",
                    fix=import_fix(module, package),
                )


def _obstacle(module: Module, use: Use) -> str:
    """Return why a use cannot be edited; empty if it can."""
    if any(isinstance(around, ast.JoinedStr) for around in module.ancestors(use.node)):
        return "it is inside an f-string; edit it by hand"
    if is_caught(module, use.node):
        return "a `try` handles versions of JAX without it; import it from `jax` in its place"
    return EXPECTED if expects_failure(module, use.node, *_ERRORS) else ""
