"""What RMT202, RMT203 and RMT207 say of a call, and how it is mended."""

from __future__ import annotations

from collections.abc import Iterable

from remat_migrate.analysis import Project
from remat_migrate.analysis.sites.uses import Call
from remat_migrate.analysis.statics.static_options import StaticSite
from remat_migrate.analysis.values.bind import Arguments
from remat_migrate.rewrite import Refused
from remat_migrate.rule import Fix, Related, Safety


def by_position(
    title: str,
    project: Project,
    static: StaticSite,
    calls: Iterable[tuple[Call, Arguments]],
    last: int,
) -> tuple[Fix, str]:
    """The fix that makes calls pass their static arguments by position, or why there is none."""
    from remat_migrate.rewrite.arguments.calls import positional_changes

    try:
        edits = positional_changes(project, static, calls, last)
    except Refused as refused:
        reason = f"{refused.reason}: pass the static arguments by position"
        return Fix(reason, Safety.MANUAL), reason
    return Fix(title, Safety.SAFE, tuple(dict.fromkeys(edits))), ""


def named_here(static: StaticSite) -> tuple[Related, ...]:
    """The place that names the static arguments."""
    option = static.option
    return (Related(option.module.source, option.module.span(option.value), "named static here"),)
