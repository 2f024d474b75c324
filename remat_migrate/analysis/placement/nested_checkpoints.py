"""Nested checkpoints: a checkpoint that contains only another one."""

from __future__ import annotations

import ast

from ..names.module import Place
from ..project import Project
from ..sites.forms import decorates
from ..sites.site import Site, sites_in
from ..values.callees import layers, targets_of
from ..values.values import Applied, Bound, External, Function, Partial, Value, Values, Wrapped
from .call_graph import own_nodes
from .stages import only_call
from .workload import COMPILED_LOOPS, DEPTH, applied_by, does_work


def checkpoint_within(project: Project, site: Site) -> Place | None:
    """Return the checkpoint of the same policy that is all that a site wraps; None if it wraps
    more.

    This must hold on every path: a function that may also be None does not count.
    """
    targets = wrapped_by(project, site)
    found: list[Applied] = []
    for target in targets:
        applied = only_checkpoint(project, target)
        if applied is None or applied.node is site.application:
            return None
        found.append(applied)
    if not found or not all(_same_policy(project, site, applied) for applied in found):
        return None
    first = min(found, key=lambda applied: (applied.node.lineno, applied.node.col_offset))
    return first.module, first.node


def calls_within(project: Project, applied: Applied) -> list[Place]:
    """Return the checkpoints that make up what a checkpoint wraps; none if it does more.

    They may be called in loops, and by functions that only call them.
    """
    found: list[Place] = []
    for target in targets_of(project.evaluator, applied.target):
        inside = _checkpoints_in(project, target.function, 0)
        if inside is None:
            return []
        found += inside
    return found


def _checkpoints_in(project: Project, function: Function, depth: int) -> list[Place] | None:
    """Return the checkpoints that do all the work of a function; None if it does more."""
    module, evaluator = function.module, project.evaluator
    found: list[Place] = []
    for node in own_nodes(function.node):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return None
        if not isinstance(node, ast.Call):
            continue
        if applied_by(evaluator, module, node) is not None:
            found.append((module, node.func))
        elif does_work(evaluator, module, node):
            values = evaluator.values(module, node.func)
            if any(isinstance(v, External) and v.name.endswith(COMPILED_LOOPS) for v in values):
                values = frozenset(v for arg in node.args for v in evaluator.values(module, arg))
                values = frozenset(v for v in values if isinstance(v, Applied | Function))
            if not values or depth == DEPTH:
                return None
            for value in values:
                if isinstance(value, Applied):
                    found.append((value.module, value.node))
                    continue
                for target in targets_of(evaluator, value):
                    inside = _checkpoints_in(project, target.function, depth + 1)
                    if inside is None:
                        return None
                    found += inside
    return found


def wrapped_by(project: Project, site: Site) -> Values:
    """Return what a site wraps."""
    module, node = site.module, site.application
    assert node is not None
    if not decorates(module, node):
        values = project.values(module, node)
    else:
        holder = module.parent(node)
        if not isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef):
            return frozenset()
        values = project.evaluator.definition(module, holder)
    own = (
        next((v for v in layers(value) if isinstance(v, Applied) and v.node is node), None)
        for value in values
    )
    return frozenset(v.target for v in own if v is not None and v.target is not None)


def only_checkpoint(project: Project, value: Value) -> Applied | None:
    """Return the checkpoint that calling a value runs, if it runs nothing else."""
    while True:
        match value:
            case Applied():
                return value
            case Wrapped(how="jax.jit", func=inner) | Partial(func=inner) | Bound(func=inner):
                value = inner
            case Function():
                call = only_call(value)
                if call is None:
                    return None
                return applied_by(project.evaluator, value.module, call)
            case _:
                return None


def _same_policy(project: Project, site: Site, applied: Applied) -> bool:
    for inner in sites_in(project, applied.module):
        if inner.application is applied.node:
            return (
                not site.spread
                and not inner.spread
                and site.options.get("policy") == inner.options.get("policy")
                # Without the barriers of the outer one, the inner one may save nothing.
                and site.options.get("prevent_cse") == inner.options.get("prevent_cse")
            )
    return False
