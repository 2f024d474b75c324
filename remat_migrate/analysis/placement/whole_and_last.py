"""Checkpoints that are all, or the last stage, of a function that is differentiated."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..names.expected_failures import in_test
from ..names.module import Module
from ..project import Project
from ..sites.find_sites import sites_in
from ..sites.site import Site
from ..values.values import Applied, Function, order
from .occurrences import Occurrence
from .operations import Operation, Operations, is_head, weight
from .placement import Placement, placement_of
from .stages import Checkpointed, checkpointed_parts
from .transforms import Derivative, derivatives_in, in_derivative_rule

# How certain it is that the checkpoint does not run in another way: it does not; no other is found,
# but something may be chosen or wrapped; others may import it; it is also called in another way.
Certainty = Literal["certain", "likely", "exported", "suspected"]
_ORDER: tuple[Certainty, ...] = ("certain", "likely", "exported", "suspected")


@dataclass(frozen=True, eq=False, slots=True)
class DifferentiatedPart:
    """A checkpoint that is all, or the last stage, of what is differentiated.

    Attributes:
        site: the checkpoint.
        derivative: what differentiates the function.
        found: which part it is, and where it is called.
        certainty: how certain it is that the checkpoint does not run in another way.
    """

    site: Site
    derivative: Derivative
    found: Checkpointed
    certainty: Certainty


def parts_in(project: Project, module: Module) -> list[DifferentiatedPart]:
    """Return the checkpoints of a module that are the whole of a function that is differentiated,
    or its last stage."""
    return project.once(_find_parts).get(module, [])


def _find_parts(project: Project) -> dict[Module, list[DifferentiatedPart]]:
    placement = placement_of(project)
    sites: dict[ast.expr, Site] = {}
    for module in project.modules.values():
        for site in sites_in(project, module):
            if site.application is not None and site.definition.same_function:
                sites[site.application] = site
    parts: dict[Module, list[DifferentiatedPart]] = {}
    known: set[Site] = set()
    modules = dict.fromkeys(project.modules.values() if sites else ())
    if any(site.definition.wraps_classes for site in sites.values()):
        # A training step may reach a Flax module through its state alone.
        modules.update(dict.fromkeys(project.mentioning(["apply_fn"])))
    for module in modules:
        for derivative, found in _checkpointed_parts(placement, module):
            applied = sites.get(found.applied.node)
            if applied is None or applied in known or in_test(applied.module, found.applied.node):
                continue
            if found.part != "bulk" and _is_one_of_several(project, found):
                continue
            certainty = _certainty(placement, applied, derivative, found)
            if certainty is not None:
                known.add(applied)
                part = DifferentiatedPart(applied, derivative, found, certainty)
                parts.setdefault(applied.module, []).append(part)
    return parts


def _checkpointed_parts(
    placement: Placement, module: Module
) -> Iterator[tuple[Derivative, Checkpointed]]:
    """Yield the checkpointed parts of what a module differentiates, outside of its tests."""
    for derivative in derivatives_in(placement.project, module):
        if _has_immediate_backward_pass(derivative):
            if not in_test(module, derivative.node):
                for value in sorted(derivative.functions, key=order):
                    for found in checkpointed_parts(placement.operations, value):
                        yield derivative, found


def _is_one_of_several(project: Project, found: Checkpointed) -> bool:
    """Return whether what follows a checkpoint keeps more than a twentieth of what that drops.

    The backward pass of what follows ends before the recomputation starts, so each needs memory
    only while the other does not. A loss keeps one array, which its gradient replaces.
    """
    after = operations_after(project, found)
    inside = _operations_of(project, found.applied)
    grows = any(operation.kind == "broadcast" for operation in after)
    return grows or (bool(inside) and (weight(after) - 1) * 20 > weight(inside))


def operations_after(project: Project, found: Checkpointed) -> list[Operation]:
    """Return what the functions that lead to a checkpoint compute after it, in this order."""
    every: list[Operation] = []
    for module, call in reversed(found.calls):
        around = module.enclosing_function(call)
        assert around is not None
        every += project.once(Operations).after(Function(module, around), call)
    return every


def _operations_of(project: Project, applied: Applied) -> list[Operation]:
    return list(project.once(Operations).of_value(applied))


def may_be_head(project: Project, found: Checkpointed) -> bool:
    """Return whether a stage may drop what is large beside all else, such as logits.

    Without a product its input may be logits: then only a loss that keeps one array, which its
    gradient replaces, needs no checkpoint.
    """
    operations = _operations_of(project, found.applied)
    kinds = {operation.kind for operation in operations}
    if "product" not in kinds:
        return not kinds or not kinds <= {"elementwise", "draw", "loss"} or weight(operations) > 1
    return is_head(operations, ("softmax",))


def _certainty(
    placement: Placement, site: Site, derivative: Derivative, found: Checkpointed
) -> Certainty | None:
    """Return how certain it is that the checkpoint is used for nothing else; None if it is."""
    levels: list[Certainty] = ["certain"]
    if not site.certain or not derivative.certain or len(derivative.functions) > 1:
        levels.append("likely")
    occurrences = list(placement.occurrences(site))
    calls = {call for _, call in found.calls}
    for module, call in found.calls:
        levels.append("likely")
        around = module.enclosing_function(call)
        assert around is not None
        occurrences += placement.occurrences(Function(module, around))
    if not _is_plain(placement, derivative):
        return None
    for occurrence in occurrences:
        if occurrence.derivative is not None and not _is_plain(placement, occurrence.derivative):
            return None
        if occurrence.how == "exported":
            levels.append("exported")
        elif occurrence.how == "called" and occurrence.node not in calls:
            if _may_be_a_stage(placement, occurrence):
                return None
            levels.append("suspected")
        elif occurrence.how in ("body", "elsewhere"):
            return None
    return max(levels, key=_ORDER.index)


def _is_plain(placement: Placement, derivative: Derivative) -> bool:
    """Return whether a gradient is taken once: it is not differentiated itself, and not part of a
    rule.
    """
    module, node = derivative.module, derivative.node
    if not _has_immediate_backward_pass(derivative):
        return False
    if in_derivative_rule(placement.project, module, node):
        return False
    if placement.differentiated.contains(module, node):
        return False
    return not any(isinstance(use, Derivative) for use in placement.transformed.get(node, ()))


def _may_be_a_stage(placement: Placement, occurrence: Occurrence) -> bool:
    """Return whether a call may be one of several stages of something that is differentiated."""
    module, node = occurrence.module, occurrence.node
    return placement.differentiated.contains(module, node) or bool(placement.loops_of(occurrence))


def _has_immediate_backward_pass(derivative: Derivative) -> bool:
    """Return whether the backward pass follows the forward pass immediately.

    What `jax.vjp` returns is called later: in `back(jax.grad(critic)(y))`, the critic runs while
    `y` is all that a checkpoint keeps.
    """
    return derivative.transform.mode == "reverse" and not derivative.transform.later


def wraps_policy(site: Site) -> bool:
    """Return whether a checkpoint has, or may have, a policy other than None."""
    if site.spread:
        return True
    option = site.arguments.get("policy")
    if option is None:
        return False
    value = option.value.func if isinstance(option.value, ast.Call) else option.value
    match value:
        case ast.Constant(value=None):
            return False
        # Called, it returns False, which means no policy.
        case ast.Name(id="nothing_saveable") | ast.Attribute(attr="nothing_saveable"):
            return False
    return True
