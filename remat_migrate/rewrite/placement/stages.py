"""Moves a checkpoint from a whole function to its stages.

A checkpoint around a whole differentiated function saves no memory: the backward pass starts by
recomputing all of it. With one on each stage but the last, one stage's values are live at a time.
"""

from __future__ import annotations

from ...analysis import Project
from ...analysis.placement.whole_and_last import wraps_policy
from ...analysis.sites.site import Site
from ...analysis.values.values import Function
from ...codemod.changes import Change, Replace
from ..refusal import Refused
from .loop_bodies import wrap_body
from .staging import stages_of
from .unwrapping import remove_site
from .wrapping import wrap_call

_ADVICE = "make each stage a function of its arrays"


def move_to_stages(project: Project, site: Site, target: Function) -> list[Change]:
    """Return the changes that checkpoint the stages of a function but the last, in place of it.

    Args:
        project: the project.
        site: the application to remove.
        target: the function that it wraps, which is differentiated.

    Raises:
        Refused: the function has no stages, or one cannot be wrapped.
    """
    checkpoint = site.api if site.api in ("jax.checkpoint", "jax.remat") else "jax.checkpoint"
    if wraps_policy(site):
        raise Refused("each stage would need its policy", site.module, site.reference)
    found = stages_of(project, target)
    before_last = found if found and found[-1].looped else found[:-1]
    chosen = {stage.call: stage for stage in before_last if not stage.done}
    if not found:
        raise Refused(f"no stages could be told apart; {_ADVICE}", target.module, target.node)
    if not chosen and not any(stage.done for stage in found):
        raise Refused(f"only one stage could be told apart; {_ADVICE}", target.module, target.node)
    changes: list[Change] = []
    for stage in chosen.values():
        if stage.body is not None:
            changes += wrap_body(
                project, stage.module, stage.call, stage.body, checkpoint=checkpoint
            )
        else:
            changes += wrap_call(project, stage.module, stage.call, checkpoint=checkpoint)
    changes = list(dict.fromkeys(changes))
    replaced = [change.node for change in changes if isinstance(change, Replace)]
    if len(set(replaced)) < len(replaced):
        reason = "stages are nested in each other: assign the inner ones to names first"
        raise Refused(reason, site.module, site.reference)
    return [*changes, *remove_site(project, site)]
