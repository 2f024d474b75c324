"""RMT305: a checkpoint wraps nothing but checkpointed code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from remat_migrate.api import (
    Confidence,
    Example,
    Finding,
    Module,
    Project,
    Related,
    Rule,
    Safety,
    Site,
    sites_in,
)
from remat_migrate.api.code import in_test
from remat_migrate.api.placement import calls_within, checkpoint_within, parts_in, wraps_policy

from .shared.placement_fixes import placement_fix
from .whole_function import CONFIDENCE

_RUN = """\
import jax


def run(block, x):
    block = jax.checkpoint(block)
    return %s(x)
"""


class NestedTwice(Rule):
    """## What it does
    Checks for a checkpoint of a function that is already a checkpoint, or only calls one, with the
    same policy and no fewer barriers; and for a checkpoint around all of what is differentiated,
    whose stages are already checkpoints.

    ## Why is this bad?
    A checkpoint of a checkpoint is redundant: memory and time are the same with one and with two.
    Around all stages of a function, the outer checkpoint saves no memory either, and each stage may
    be computed three times instead of twice.

    ## Fix
    Removes the outer checkpoint.
    """

    code, name = "RMT305", "nested-twice"
    fix_safety = Safety.UNSAFE
    severity = "note"
    wrong = [
        Example(
            "import jax\n\n\ndef run(f):\n    return jax.checkpoint(jax.checkpoint(f))\n",
            "import jax\n\n\ndef run(f):\n    return jax.checkpoint(f)\n",
        ),
        Example(_RUN % "jax.checkpoint(lambda x: block(x))", _RUN % "(lambda x: block(x))"),
    ]
    right = [
        # A policy on the inner one, full recomputation on the outer one.
        "import jax\n\n\n"
        "def run(block):\n"
        "    saving = jax.checkpoint(block, policy=jax.checkpoint_policies.dots_saveable)\n"
        "    return jax.checkpoint(saving)\n",
        # Two levels: the outer one runs several inner ones.
        _RUN % "jax.checkpoint(lambda x: block(block(x)))",
        # A flag may leave out the inner one.
        "import jax\n\n\n"
        "def run(block, inner):\n"
        "    if inner:\n"
        "        block = jax.checkpoint(block)\n"
        "    return jax.checkpoint(lambda x: block(x))\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each outer checkpoint that adds nothing."""
        sites = [
            site
            for site in sites_in(project, module)
            if site.application is not None
            and site.definition.same_function
            and site.certain
            and not in_test(module, site.application)
        ]
        parts = parts_in(project, module) if sites else []
        wholes = {
            part.site: part
            for part in parts
            if part.found.part in ("whole", "bulk") and not wraps_policy(part.site)
        }
        for site in sites:
            inner = checkpoint_within(project, site)
            if inner is not None:
                message = "wraps nothing but a checkpoint, and is redundant"
                yield self._finding(project, site, inner, "high", message)
            elif site in wholes:
                calls = calls_within(project, wholes[site].found.applied)
                if calls:
                    confidence = CONFIDENCE[wholes[site].certainty]
                    message = (
                        "wraps stages that are already checkpointed; it saves no memory, and may"
                        " compute each stage once more"
                    )
                    yield self._finding(project, site, calls[0], confidence, message)

    def _finding(
        self,
        project: Project,
        site: Site,
        inner: tuple[Module, ast.expr],
        confidence: Confidence,
        message: str,
    ) -> Finding:
        from remat_migrate.api.rewrites import remove_site

        owner, node = inner
        title = "remove the outer checkpoint"
        make = partial(remove_site, project, site)
        fix = placement_fix(title, confidence == "low", title, make)
        return self.finding(
            site.module.source,
            site.span,
            f"`{site.api}` {message}",
            confidence=confidence,
            related=(Related(*owner.location(node), "the inner checkpoint"),),
            fix=fix,
        )
