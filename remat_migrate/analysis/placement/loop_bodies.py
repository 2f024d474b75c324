"""What a loop body does: almost nothing, or work that is worth a checkpoint."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..names.expected_failures import in_test
from ..names.module import Module
from ..names.scopes import own_nodes
from ..project import Project
from ..sites.find_sites import sites_in, wrapped_by
from ..values.callees import targets_of
from ..values.values import Function
from .placement import Placement
from .transforms import LoopUse, in_derivative_rule, loops_in

_CHECKPOINT_WORDS = ("remat", "checkpoint", "ckpt")


def differentiated_loops(placement: Placement, module: Module) -> Iterator[LoopUse]:
    """Yield the loops of a module that are surely differentiated in reverse mode, but for those in
    tests and in custom derivative rules.
    """
    for loop in loops_in(placement.project, module):
        # Looking for derivatives in the whole project comes last.
        if (
            loop.certain
            and not in_test(module, loop.node)
            and not in_derivative_rule(placement.project, module, loop.node)
            and placement.differentiated_backward.contains(module, loop.node)
        ):
            yield loop


def has_heavy_body(placement: Placement, loop: LoopUse) -> bool:
    """Return whether every body of a loop surely multiplies matrices, where it is differentiated.

    Bodies that run or mention a checkpoint have what they need.
    """
    operations, differentiated = placement.operations, placement.differentiated_backward
    bodies = operations.run_by(loop.functions)
    if loop.transform.own_checkpoints or not bodies or not _is_known(placement, loop):
        return False
    for body in bodies:
        inside = list(operations.of_value(body))
        if any(operation.checkpoint is not None for operation in inside):
            return False
        if not any(o.kind == "product" and o.function in differentiated for o in inside):
            return False
        for target in targets_of(placement.evaluator, body):
            if _mentions_checkpoint(placement.project, target.function):
                return False
    return True


def _is_known(placement: Placement, loop: LoopUse) -> bool:
    """Return whether a body is known on every path: not after `if wrap: body = wrap(body)`."""
    module, body = loop.module, loop.subject
    bindings = module.reaching(body) if isinstance(body, ast.Name) else ()
    return all(placement.evaluator.binding(module, binding) for binding in bindings)


def _mentions_checkpoint(project: Project, function: Function) -> bool:
    module = function.module
    sites = sites_in(project, module)
    if any(around is function.node for s in sites for around in module.ancestors(s.reference)):
        return True
    # `remat_ffn(x)`, where a caller says which
    called = (node.func for node in own_nodes(function.node) if isinstance(node, ast.Call))
    names = (getattr(func, "attr", getattr(func, "id", "")).lower() for func in called)
    return any(word in name for name in names for word in _CHECKPOINT_WORDS)


def in_checkpoint(placement: Placement, module: Module, node: ast.AST) -> bool:
    """Return whether code is in a function that a checkpoint of its module wraps."""
    wrapped = {
        target.function.node
        for site in sites_in(placement.project, module)
        if site.application is not None
        for value in wrapped_by(placement.project, site)
        for target in targets_of(placement.evaluator, value)
    }
    return any(around in wrapped for around in module.ancestors(node))
