"""RMT403: a policy that saves everything undoes the checkpoint.

https://docs.jax.dev/en/latest/jax.html#jax.checkpoint_policies.everything_saveable
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from remat_migrate.analysis import Module, Project, Site
from remat_migrate.analysis.policies.known_policies import policy_of
from remat_migrate.analysis.policies.values import (
    Origin,
    PolicyPlace,
    origins,
    policy_places,
    saves_everything,
)
from remat_migrate.analysis.sites.site import sites_of
from remat_migrate.analysis.values.values import External
from remat_migrate.rule import Example, Finding, Related, Rule

from .placement_fixes import placement_fix

_SHOWN = (
    "from jax._src.ad_checkpoint import saved_residuals\n"
    "kept = [text for _, text in saved_residuals(f, 1.0) if 'argument' not in text]\n"
)


class SavesEverything(Rule):
    """## What it does

    Finds checkpoints whose policy saves everything: `everything_saveable`, a function that always
    returns True, and, since jax 0.10.2, `save_anything_except_these_names`, which does not look at
    the names any more. Only where the policy is this one for sure: one of several that a setting
    chooses is left alone, and so are tests, which ask what such a policy does.

    ## Why is this bad?

    Nothing is computed again, so nothing is gained, and the barriers that keep the two passes apart
    hold on to every value that is saved: the peak can be higher than without a checkpoint. Under
    `jax_remat3` a function that always returns True is asked only about matrix products,
    convolutions and named values: it saves these, and the rest is computed again.

    ## Fix

    Takes the checkpoint off, which computes the same with no more memory. Where a name was to be
    excluded, that is not done: say which names to save, by `save_only_these_names` or
    `save_any_names_but_these`.
    """

    code, name = "RMT403", "saves-everything"
    severity = "warning"
    url = "https://docs.jax.dev/en/latest/jax.html#jax.checkpoint_policies.everything_saveable"
    wrong = [
        Example(
            "import jax\nimport jax.numpy as jnp\n\n\n"
            "def f(x):\n"
            "    return jnp.sin(jnp.sin(x))\n\n\n"
            "f = jax.checkpoint(f, policy=jax.checkpoint_policies.everything_saveable)\n"
            "slope = jax.grad(f)\n",
            "import jax\nimport jax.numpy as jnp\n\n\n"
            "def f(x):\n"
            "    return jnp.sin(jnp.sin(x))\n\n\n"
            "slope = jax.grad(f)\n",
            use=_SHOWN,
            shows="assert len(kept) == 2\n",
            holds="assert len(kept) == 2\n",
        ),
        Example(
            "import jax\nimport jax.numpy as jnp\n\n\n"
            "f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=lambda *_, **__: True)\n",
            "import jax.numpy as jnp\n\n\nf = lambda x: jnp.sin(jnp.sin(x))\n",
            use=_SHOWN,
            shows="assert len(kept) == 2\n",
            holds="assert len(kept) == 2\n",
        ),
        Example(
            "import jax\nimport jax.numpy as jnp\n\n\n"
            "policies = jax.checkpoint_policies\n"
            "f = jax.checkpoint(\n"
            "    lambda x: jnp.sin(jnp.sin(x)),\n"
            '    policy=policies.save_anything_except_these_names("h"),\n'
            ")\n",
            use=_SHOWN,
            shows="assert len(kept) == 2\n",
        ),
    ]
    right = [
        Example(
            "import jax\nimport jax.numpy as jnp\n\n"
            "f = jax.checkpoint(\n"
            "    lambda x: jnp.sin(jnp.sin(x)), policy=jax.checkpoint_policies.nothing_saveable\n"
            ")\n",
            use=_SHOWN,
            holds="assert kept == []\n",
        ),
        "import jax\n\n\n"
        "def checkpointed(f, save_all):\n"
        "    policies = jax.checkpoint_policies\n"
        "    policy = policies.everything_saveable if save_all else policies.dots_saveable\n"
        "    return jax.checkpoint(f, policy=policy)\n",
        "import jax\n\n"
        'f = jax.checkpoint(print, policy=lambda prim, *_, **__: prim.name == "tanh")\n',
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """One finding for each checkpoint whose policy saves everything."""
        version = project.settings.jax_version
        for place in policy_places(project, module):
            if place.site is None or _is_tested(module, place.node):
                continue  # of a policy of two the whole is looked at
            found = origins(project, module, place.node)
            if len(found) != 1 or not found[0].only:
                continue
            how = saves_everything(project, found[0], version)
            if how is None:
                continue
            yield self._finding(project, place, found[0], how)

    def _finding(self, project: Project, place: PolicyPlace, origin: Origin, how: str) -> Finding:
        from remat_migrate.rewrite.placement import remove_site

        site = place.site
        assert site is not None
        advice = "take the checkpoint off, or give it a policy that leaves something out"
        fix, reason = None, advice
        if _excludes_names(project, origin):
            reason = (
                "the names are not looked at since jax 0.10.2: say which to save, by"
                " `save_only_these_names` or `save_any_names_but_these`, or take the checkpoint off"
            )
        elif _is_only(project, site, place):
            fix, reason = placement_fix(
                "take the checkpoint off", False, advice, partial(remove_site, project, site)
            )
        related: tuple[Related, ...] = ()
        if origin.node is not place.node and isinstance(origin.node, ast.expr):
            span = origin.module.span(origin.node)
            related = (Related(origin.module.source, span, "this saves everything"),)
        return self.finding(
            place.module.source,
            place.module.span(place.node),
            f"{how} saves everything: the checkpoint computes nothing again, and keeps no less",
            related=related,
            fix=fix,
            reason=reason,
        )


def _is_tested(module: Module, node: ast.AST) -> bool:
    """Whether a test asks what a checkpoint does with such a policy."""
    stem = module.source.path.stem
    return (
        stem.startswith("test_")
        or stem.endswith("_test")
        or any(
            isinstance(around, ast.FunctionDef) and around.name.lower().startswith("test")
            for around in module.ancestors(node)
        )
    )


def _excludes_names(project: Project, origin: Origin) -> bool:
    """Whether a factory is called whose names were meant to be left out."""
    for node in ast.walk(origin.node):
        if isinstance(node, ast.Call):
            for value in project.values(origin.module, node.func):
                policy = policy_of(value.name) if isinstance(value, External) else None
                if policy is not None and any(n.role == "excluded" for n in policy.names):
                    return True
    return False


def _is_only(project: Project, site: Site, place: PolicyPlace) -> bool:
    """Whether the option is given to one application alone."""
    sharing = [
        other
        for other in sites_of(project)
        if other.application is not None
        and any(o.value is place.node for o in other.arguments.values())
    ]
    return sharing == [site]
