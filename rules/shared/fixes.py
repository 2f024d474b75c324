"""Fixes that several rules offer, or the advice that takes their place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from remat_migrate.api import Fix, Project, Related, Safety
from remat_migrate.api.changes import Code, Refused, Replace
from remat_migrate.api.code import Arguments
from remat_migrate.api.sites import Call
from remat_migrate.api.statics import Misplaced, StaticSite, read_indices

if TYPE_CHECKING:
    from remat_migrate.api.rewrites import Migration


def migration_fix(migrate: Callable[[], Migration]) -> tuple[Fix, tuple[Related, ...], str]:
    """Return the fix of a migration, the locations that explain it, and what callers may lose."""
    try:
        migration = migrate()
    except Refused as refused:
        return Fix.manual(refused.reason), obstacle(refused), refused.reason
    safety = Safety.UNSAFE if migration.breaks else Safety.SAFE
    return Fix(migration.title, safety, migration.changes), migration.notes, migration.breaks


def obstacle(refused: Refused) -> tuple[Related, ...]:
    """Return the location that prevents a rewrite, if there is one."""
    if refused.module is None or not isinstance(refused.node, ast.expr | ast.arg):
        return ()
    return (Related(*refused.module.location(refused.node), refused.label),)


def positional_fix(
    title: str,
    project: Project,
    static: StaticSite,
    calls: Iterable[tuple[Call, Arguments]],
    last: int,
) -> Fix:
    """Return the fix that makes calls pass their static arguments by position."""
    from remat_migrate.api.rewrites import positional_changes

    if not static.site.certain:
        return Fix.manual(f"it is not a checkpoint on every path; where it is, {title}")
    try:
        changes = positional_changes(project, static.site, static.target.function, calls, last)
    except Refused as refused:
        return Fix.manual(f"{refused.reason}: pass the static arguments by position")
    return Fix(title, Safety.SAFE, tuple(dict.fromkeys(changes)))


def renumbering_fix(
    project: Project, static: StaticSite, indices: tuple[int, ...], last: int
) -> Fix:
    """Return the fix that writes other `static_argnums`, up to the parameter at `last`, and makes
    calls pass these arguments by position.
    """
    option, title = static.option, f"write `static_argnums={indices!r}`"
    is_here = read_indices(project, option).node is option.value
    if not is_here or option.call is not static.site.application:
        return Fix.manual(f"{title} where the indices are set; other applications may share them")
    calls = positional_fix(title, project, static, static.bound, last)
    if calls.safety is Safety.MANUAL:
        return Fix.manual(f"{title}: {calls.title}")
    change = Replace(option.module, option.value, Code(repr(indices)))
    return Fix(title, Safety.SAFE, (change, *calls.changes))


def misplaced_fix(title: str, project: Project, found: Misplaced) -> Fix:
    """Return the fix that makes one call pass its static arguments by position."""
    bound = [pair for pair in found.static.bound if pair[0] is found.call]
    return positional_fix(title, project, found.static, bound, found.last)


def named_static_here(static: StaticSite) -> tuple[Related, ...]:
    """Return the location of the option that names the static arguments."""
    option = static.option
    return (Related(*option.module.location(option.value), "named static here"),)
