"""Options given before there is a function: `jax.checkpoint(policy=p)` as it is meant."""

from __future__ import annotations

import ast

from ..model import Module, Project
from ..model.sites import Site
from ..source import Edit
from .imports import written
from .leading_argument import leading_argument
from .refusal import check_editable


def supply_subject(project: Project, site: Site, factory: ast.Call) -> list[Edit]:
    """The edits that make an application of an Api that is no factory one that works.

    `@jax.checkpoint()` becomes `@jax.checkpoint`, `jax.checkpoint(policy=p)(f)` becomes
    `jax.checkpoint(f, policy=p)`, and all else a `functools.partial`.

    Args:
        project: the project.
        site: the site; its callee has options and nothing to wrap.
        factory: the call that has the options.

    Raises:
        Refused: it stands where nothing can be edited.
    """
    module = site.module
    check_editable(module, [factory])
    subject = _subject(module, factory)
    path = module.source.path
    if not factory.keywords and not factory.args:
        end = module.span(factory.func).end
        return [Edit(path, end, module.span(factory).end, "")]
    if subject is not None:
        outer = module.parent(factory)
        assert isinstance(outer, ast.Call)
        return [
            leading_argument(module, factory, module.segment(subject)),
            Edit(path, module.span(factory).end, module.span(outer).end, ""),
        ]
    partial = written(project, module, "functools.partial", factory)
    start, end = module.span(factory.func)
    return [
        Edit(path, start, end, partial.text),
        leading_argument(module, factory, module.segment(factory.func)),
        *partial.edits,
    ]


def _subject(module: Module, factory: ast.Call) -> ast.expr | None:
    """What is wrapped, where the result is called at once with that alone, on one line."""
    match module.parent(factory):
        case ast.Call(func=func, args=[subject], keywords=[]) as outer if func is factory:
            if isinstance(subject, ast.Starred):
                return None
            rest = (module.span(factory).end, module.span(outer).end)
            if "\n" in module.source.text[slice(*rest)]:
                return None  # its layout and comments stay where they are
            return subject
    return None
