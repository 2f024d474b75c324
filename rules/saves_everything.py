"""RMT403: a policy that saves everything undoes the checkpoint."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from remat_migrate.api import Example, Finding, Fix, Module, Project, Related, Rule, Safety, Site
from remat_migrate.api.code import in_test
from remat_migrate.api.policies import (
    POLICY_OPTION,
    Origin,
    named,
    policy_places,
    saves_everything,
    sole_origin,
)
from remat_migrate.api.sites import sites_with

from .shared.example_uses import RESIDUALS
from .shared.placement_fixes import placement_fix

_HEAD = "import jax\nimport jax.numpy as jnp\n\n\n"
_F = (
    _HEAD
    + """\
def f(x):
    return jnp.sin(jnp.sin(x))


%sslope = jax.grad(f)
"""
)


class SavesEverything(Rule):
    """## What it does
    Checks for checkpoints whose policy saves everything: `everything_saveable`, a function that
    always returns `True`, and, since jax 0.10.2, `save_anything_except_these_names`, which ignores
    the names. Reports only policies that are certain; a policy that a setting selects is ignored,
    and so are tests of such policies.

    ## Why is this bad?
    Nothing is recomputed, so nothing is gained, and the barriers between the two passes keep all
    saved values alive. Peak memory can be higher than without a checkpoint. Under `jax_remat3`, JAX
    asks a function that always returns `True` only about matrix products, convolutions, and named
    values; it saves these and recomputes the rest.

    ## Fix
    Removes the checkpoint, which gives the same result without using more memory. If the policy was
    meant to exclude a name, there is no automatic fix: name what to save with
    `save_only_these_names` or `save_any_names_but_these`.
    """

    code, name = "RMT403", "saves-everything"
    fix_safety = Safety.UNSAFE
    severity = "warning"
    url = "https://docs.jax.dev/en/latest/jax.html#jax.checkpoint_policies.everything_saveable"
    wrong = [
        Example(
            _F % "f = jax.checkpoint(f, policy=jax.checkpoint_policies.everything_saveable)\n",
            _F % "",
            use=RESIDUALS,
            shows="assert len(kept) == 2\n",
            holds="assert len(kept) == 2\n",
        ),
        Example(
            _HEAD
            + "f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=lambda *_, **__: True)\n",
            "import jax.numpy as jnp\n\n\nf = lambda x: jnp.sin(jnp.sin(x))\n",
            use=RESIDUALS,
            shows="assert len(kept) == 2\n",
            holds="assert len(kept) == 2\n",
        ),
        Example(
            _F % 'policy = jax.checkpoint_policies.save_anything_except_these_names("h")\n'
            "f = jax.checkpoint(f, policy=policy)\n",
            use=RESIDUALS,
            shows="assert len(kept) == 2\n",
        ),
    ]
    right = [
        Example(
            _F % "f = jax.checkpoint(f, policy=jax.checkpoint_policies.nothing_saveable)\n",
            use=RESIDUALS,
            holds="assert kept == []\n",
        ),
        "import jax\n\n\n"
        "def checkpointed(f, save_all):\n"
        "    policies = jax.checkpoint_policies\n"
        "    policy = policies.everything_saveable if save_all else policies.dots_saveable\n"
        "    return jax.checkpoint(f, policy=policy)\n",
    ]

    def check(self, module: Module, project: Project) -> Iterator[Finding]:
        """Report each checkpoint whose policy saves everything."""
        version = project.jax_version(module.source.path)
        for place in policy_places(project, module):
            if place.site is None or in_test(module, place.node):
                continue  # a part of a combined policy
            origin = sole_origin(module, place.node)
            how = saves_everything(project, module, origin, version) if origin else None
            if origin is not None and how is not None:
                yield self._finding(project, module, place.site, origin, how)

    def _finding(
        self, project: Project, module: Module, site: Site, origin: Origin, how: str
    ) -> Finding:
        from remat_migrate.api.rewrites import remove_site

        title = "remove the checkpoint"
        fix = Fix.manual(f"{title}, or pass a policy that does not save everything")
        option = site.arguments[POLICY_OPTION]
        if _excludes_names(project, module, origin):
            fix = Fix.manual(
                "JAX ignores these names since 0.10.2; use `save_only_these_names` or"
                " `save_any_names_but_these`, or remove the checkpoint"
            )
        elif [o for o in sites_with(project, option) if o.application is not None] == [site]:
            make = partial(remove_site, project, site)
            fix = placement_fix(title, False, fix.title, make)
        related: tuple[Related, ...] = ()
        if origin is not option.value and isinstance(origin, ast.expr):
            related = (Related(*module.location(origin), "this saves everything"),)
        return self.finding(
            *module.location(option.value),
            f"{how} saves everything, so the checkpoint recomputes nothing and saves no memory",
            related=related,
            fix=fix,
        )


def _excludes_names(project: Project, module: Module, origin: Origin) -> bool:
    """Return whether the policy is made by a factory that takes names to exclude."""
    policies = (
        named(project, module, node.func) for node in ast.walk(origin) if isinstance(node, ast.Call)
    )
    return any(names.role == "excluded" for p in policies if p is not None for names in p.names)
