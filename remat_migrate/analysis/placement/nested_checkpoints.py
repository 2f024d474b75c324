"""Nested checkpoints: a checkpoint that contains only another one."""

from __future__ import annotations

import ast

from ..names.module import Place
from ..names.scopes import own_nodes
from ..project import Project
from ..sites.find_sites import sites_in, wrapped_by
from ..sites.site import Site
from ..values.callees import targets_of
from ..values.values import Applied, Value, Wrapped, layers
from .operations import SAME_WORK, Operations, outer_checkpoint
from .stages import python_loop

# How many functions may lie between the two.
_DEPTH = 5


def checkpoint_within(project: Project, site: Site) -> Place | None:
    """Return the checkpoint of the same policy that is all that a site wraps; None if it wraps
    more.

    This must hold on every path: the inner one does not count if a flag may turn it off.
    """
    found: list[Applied] = []
    for target in wrapped_by(project, site):
        applied = only_checkpoint(project.once(Operations), target, always=True)
        if applied is None or applied.node is site.application:
            return None
        found.append(applied)
    if not found or not all(_is_redundant(project, site, applied) for applied in found):
        return None
    first = min(found, key=lambda applied: (applied.node.lineno, applied.node.col_offset))
    return first.module, first.node


def calls_within(project: Project, applied: Applied) -> list[Place]:
    """Return the checkpoints that make up what a checkpoint wraps, but for a tenth; none if it does
    more.

    They may be called in loops, and by functions that only call them.
    """
    operations = project.once(Operations)
    found: dict[ast.expr, Place] = {}
    inside = outside = 0
    for target in targets_of(project.evaluator, applied):
        for operation in operations.of(target.function):
            if (inner := operation.checkpoint) is not None:
                found[inner.node] = inner.module, inner.node
                inside += operation.weight
            elif operation.is_work:
                outside += operation.weight
    return list(found.values()) if outside * 10 <= inside else []


def only_checkpoint(
    operations: Operations, value: Value, depth: int = 0, *, always: bool = False
) -> Applied | None:
    """Return the checkpoint that calling a value runs, if it runs nothing else; with `always`, only
    if no flag may leave it out.
    """
    applied = outer_checkpoint(value)
    if applied is not None or depth > _DEPTH:
        return applied
    if any(isinstance(one, Wrapped) and one.how not in SAME_WORK for one in layers(value)):
        return None
    functions = {target.function for target in targets_of(operations.evaluator, value)}
    if len(functions) != 1:
        return None
    [function] = functions
    calls = {operation.node for operation in operations.of(function)}
    calls |= {node for node in own_nodes(function.node) if isinstance(node, ast.BinOp)}
    call = calls.pop() if len(calls) == 1 else None
    if not isinstance(call, ast.Call) or python_loop(function.module, call):
        return None
    found = operations.applied_by(function.module, call)
    values = operations.callees(function.module, call)
    if always and found is not None and not all(map(outer_checkpoint, values)):
        return None
    if found is not None or len(values) != 1:
        return found
    return only_checkpoint(operations, next(iter(values)), depth + 1, always=always)


def _is_redundant(project: Project, site: Site, applied: Applied) -> bool:
    for inner in sites_in(project, applied.module):
        if inner.application is not applied.node or not inner.definition.same_function:
            continue
        outer, options = site.options, inner.options
        # Without the barriers of the outer one, the inner one may save nothing.
        barriers = "True", outer.get("prevent_cse", "True")
        return (
            not (site.spread or inner.spread)
            and outer.get("policy", "None") == options.get("policy", "None")
            and options.get("prevent_cse", "True") in barriers
        )
    return False
