"""Calls of a checkpointed function that are made to pass their static arguments by position."""

from __future__ import annotations

from collections.abc import Iterable

from ..model.bind import Arguments
from ..model.static_options import StaticSite, tracing_layer
from ..model.uses import Call
from ..source import Edit
from .calls import pass_by_position
from .refusal import Refused


def positional_edits(
    static: StaticSite, calls: Iterable[tuple[Call, Arguments]], last: int
) -> list[Edit]:
    """The edits that make calls pass parameters up to number `last` by position.

    Raises:
        Refused: some call cannot be rewritten, or not by the tool.
    """
    every = static.site.definition.static_calls == "keywords-ignored"
    edits: list[Edit] = []
    for call, bound in calls:
        made = pass_by_position(call, bound, static.function, last, every=every)
        if made and not call.module.editable:
            raise Refused(
                "the call stands in a file that is not to be changed", call.module, call.node
            )
        layer = tracing_layer(call.callee)
        if made and layer is not None:
            raise Refused(
                f"the call goes through `{layer.how}`, which may trace or count its arguments",
                call.module,
                call.node,
            )
        edits += made
    return edits
