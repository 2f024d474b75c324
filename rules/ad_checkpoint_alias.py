"""RMT103: `jax.ad_checkpoint.checkpoint` and `.remat` are gone.

Deprecated in jax 0.8.2, removed in 0.10.0: https://docs.jax.dev/en/latest/changelog.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from remat_migrate.analysis import Module, Project
from remat_migrate.analysis.names.expected_failures import EXPECTED, expects_failure
from remat_migrate.rule import Example, Finding, Fix, Rule, Safety
from remat_migrate.suppressions import read_directives

from .ad_checkpoint_uses import Use, find_uses, is_caught, sites_with_name

DEPRECATED_IN, GONE_IN = (0, 8, 2), (0, 10, 0)


class AdCheckpointAlias(Rule):
    """## What it does

    Finds `jax.ad_checkpoint.checkpoint` and `jax.ad_checkpoint.remat`: imported by name, read as an
    attribute under any alias, or by `getattr`.

    ## Why is this bad?

    They were second names of `jax.checkpoint` and `jax.remat`. jax 0.8.2 deprecated them, from
    0.10.0 on they raise `AttributeError` or `ImportError`. The rest of `jax.ad_checkpoint` stays:
    `checkpoint_name`, `checkpoint_policies`, `print_saved_residuals`.

    ## Fix

    Imports the same name from `jax`, splitting an import that also takes names that stay, or writes
    `jax.checkpoint`; then takes away an import of `jax.ad_checkpoint` that nothing uses any more. A
    `try` or `if` that chose between the old place and the new comes down to the new.
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
            "import jax\n\nf = jax.checkpoint(print)\n",
        ),
        Example(
            "import jax\nfrom jax import ad_checkpoint\n\nf = ad_checkpoint.remat(print)\n",
            "import jax\n\nf = jax.remat(print)\n",
        ),
        Example(
            "try:\n"
            "    from jax.ad_checkpoint import checkpoint\n"
            "except ImportError:\n"
            "    from jax import checkpoint\n",
            "from jax import checkpoint\n",
        ),
        Example('mock.patch("jax.ad_checkpoint.checkpoint")\n'),
    ]
    right = [
        "from jax.ad_checkpoint import checkpoint_name, checkpoint_policies\n",
        "from jax._src.ad_checkpoint import checkpoint, remat\n",
        "from torch.utils.checkpoint import checkpoint\n",
        '"""Formerly jax.ad_checkpoint.checkpoint."""\n',
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for every gone name of an import, and for every place that reads one."""
        version = project.settings.jax_version
        if version < DEPRECATED_IN:
            return
        uses = find_uses(module, project)
        if not uses:
            return
        from .ad_checkpoint_fixes import Fixer

        fixes = Fixer(module, project, uses, self._open(module, uses)).fixes()
        for use in uses:
            new = f"`jax.{use.name}`"
            gone = "gone since jax 0.10.0" if version >= GONE_IN else "deprecated since jax 0.8.2"
            works = version < GONE_IN or is_caught(module, use)
            yield self.finding(
                module.source,
                use.span,
                f"`jax.ad_checkpoint.{use.name}` is {gone}: use {new}",
                severity="warning" if works else "error",
                confidence="high" if use.certain else "medium",
                fix=fixes.get(use) or Fix(f"use {new}", Safety.MANUAL),
                reason=use.reason or _obstacle(module, use),
                sites=sites_with_name(module, project, use.name),
            )

    def _open(self, module: Module, uses: list[Use]) -> list[Use]:
        """The uses to mend: neither suppressed, nor where nothing can be edited.

        What others need is not taken away from them.
        """
        directives = read_directives(module.source, python=True)
        return [
            use
            for use in uses
            if not _obstacle(module, use)
            and not any(
                directive.covers(module.source.position(use.span.start)[0], self.code)
                for directive in directives
            )
        ]


def _obstacle(module: Module, use: Use) -> str:
    """Why a place cannot be edited; "" if it can."""
    if any(isinstance(around, ast.JoinedStr) for around in module.ancestors(use.node)):
        return "it stands inside an f-string: write it by hand"
    errors = ("AttributeError", "ImportError", "ModuleNotFoundError")
    return EXPECTED if expects_failure(module, use.node, *errors) else ""
