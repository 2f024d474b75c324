"""Rewrites options that are passed without a function: `jax.checkpoint(policy=p)`."""

from __future__ import annotations

import ast

from ..analysis import Project
from ..analysis.sites.references import reference_to
from ..analysis.sites.site import Site
from ..codemod.changes import Change, Code, InsertArgument, Keep, Replace
from .refusal import check_editable


def supply_subject(project: Project, site: Site, factory: ast.Call) -> list[Change]:
    """Return the changes of a `factory` call that passes options to an Api but no function.

    `@jax.checkpoint()` becomes `@jax.checkpoint`, `jax.checkpoint(policy=p)(f)` becomes
    `jax.checkpoint(f, policy=p)`, and any other a `functools.partial`.
    """
    module = site.module
    check_editable(module, [factory])
    if not factory.keywords and not factory.args:
        return [Keep(module, factory, factory.func)]
    match module.parent(factory):
        case ast.Call(func=func, args=[subject], keywords=[]) as outer if (
            func is factory
            and not isinstance(subject, ast.Starred)
            and factory.end_lineno == outer.end_lineno  # keep the layout and comments otherwise
        ):
            first = Code.of("{subject}", subject=subject)
            return [InsertArgument(module, factory, first), Keep(module, outer, factory)]
    partial = reference_to(module, project, "functools.partial", factory)
    return [
        Replace(module, factory.func, Code(partial.text)),
        InsertArgument(module, factory, Code.of("{wrapper}", wrapper=factory.func)),
        *partial.changes,
    ]
