"""Moves a checkpoint from a whole function to its stages.

A checkpoint around a whole differentiated function saves no memory: the backward pass starts by
recomputing all of it. With one on each stage but the last, one stage's values are live at a time.
"""

from __future__ import annotations

import ast

from ...analysis import Project
from ...analysis.sites.site import Site
from ...analysis.statics.mutated_state import changes_later
from ...analysis.values.values import Function
from ...codemod.changes import Change, Replace
from ..refusal import Refused
from .loop_bodies import wrap_body
from .staging import Stage, stages_of
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
    options = _options(site)
    found = stages_of(project, target)
    chosen = _chosen(found)
    if not found:
        raise Refused(f"no stages could be told apart; {_ADVICE}", target.module, target.node)
    if not chosen and not any(stage.done for stage in found):
        raise Refused(f"only one stage could be told apart; {_ADVICE}", target.module, target.node)
    changes: list[Change] = []
    for stage in chosen:
        if options and stage.module is not site.module:
            reason = "a stage in another file needs its options"
            raise Refused(reason, site.module, site.reference)
        changes += _wrapped(project, stage, checkpoint, options)
    changes = list(dict.fromkeys(changes))
    replaced = [change.node for change in changes if isinstance(change, Replace)]
    if len(set(replaced)) < len(replaced):
        reason = "stages are nested in each other: assign the inner ones to names first"
        raise Refused(reason, site.module, site.reference)
    return [*changes, *remove_site(project, site)]


def _options(site: Site) -> list[str]:
    """Return the options that the stages need as well."""
    policy = site.arguments.get("policy")
    if site.spread:
        raise Refused("its options are unpacked, and cannot move", site.module, site.reference)
    if policy is None:
        return []
    later = changes_later(policy.module, policy.value)
    local = [
        n
        for n in ast.walk(policy.value)
        if isinstance(n, ast.Name)
        and any(b.scope.parent is not None for b in policy.module.reaching(n))
    ]
    if later is not None or local or policy.module is not site.module:
        reason = "its policy is a value that the stages cannot read"
        raise Refused(reason, policy.module, policy.value)
    return [f"policy={policy.module.segment(policy.value)}"]


def _chosen(found: list[Stage]) -> list[Stage]:
    """Return the stages that need a checkpoint: all but the last, each call once."""
    if found and not found[-1].looped:
        found = found[:-1]
    once = {stage.call: stage for stage in found}
    return [stage for stage in once.values() if not stage.done]


def _wrapped(project: Project, stage: Stage, checkpoint: str, options: list[str]) -> list[Change]:
    if stage.body is not None:
        if options:
            reason = "its policy would apply to the body of a loop"
            raise Refused(reason, stage.module, stage.call)
        return wrap_body(project, stage.module, stage.call, stage.body, checkpoint=checkpoint)
    return wrap_call(project, stage.module, stage.call, options, checkpoint=checkpoint)
