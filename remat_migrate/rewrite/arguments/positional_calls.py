"""Calls of a checkpointed function that are made to pass their static arguments by position."""

from __future__ import annotations

from collections.abc import Iterable

from ...analysis import Project
from ...analysis.sites.uses import Call
from ...analysis.statics.static_options import StaticSite
from ...analysis.values.bind import Arguments
from ...codemod.changes import Change
from ..refusal import Refused
from .argument_specs import Added, spec_changes
from .calls import pass_by_position


def positional_changes(
    project: Project, static: StaticSite, calls: Iterable[tuple[Call, Arguments]], last: int
) -> list[Change]:
    """The changes that make calls pass parameters up to number `last` by position.

    All calls are changed where a transformation that they go through must be changed with them.

    Raises:
        Refused: some call cannot be rewritten, or not by the tool.
    """
    changes, specs = _changes(project, static, calls, last)
    if specs:
        changes, specs = _changes(project, static, static.bound, last)
    return [*changes, *specs]


def _changes(
    project: Project, static: StaticSite, calls: Iterable[tuple[Call, Arguments]], last: int
) -> tuple[list[Change], list[Change]]:
    every = static.site.definition.static_calls == "keywords-ignored"
    needed = {p.name for p in static.static}
    changes: list[Change] = []
    through: list[tuple[Call, list[Added]]] = []
    for call, bound in calls:
        made, added = pass_by_position(
            call, bound, static.target.function, last, needed=needed, every=every
        )
        if made and not call.module.editable:
            raise Refused(
                "the call stands in a file that is not to be changed", call.module, call.node
            )
        through.append((call, added))
        changes += made
    return changes, spec_changes(project, through)
