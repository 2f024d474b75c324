"""What a loop body does: almost nothing, or work that is worth a checkpoint."""

from __future__ import annotations

import ast

from ..names.module import Module
from ..names.scopes import FunctionNode, own_nodes
from ..project import Project
from ..sites.find_sites import sites_in
from ..sites.site import Site
from ..values.callees import targets_of
from ..values.values import Function
from .nested_checkpoints import wrapped_by
from .placement import Placement
from .stages import in_python_loop
from .transforms import LoopUse
from .whole_and_last import wraps_policy

_CHECKPOINT_WORDS = ("remat", "checkpoint", "ckpt")


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


def checkpoint_of_scan(placement: Placement, loop: LoopUse) -> Site | None:
    """Return the checkpoint of a function that does nothing but run a loop.

    None if it has a policy, or is called several times: each call may be one of several segments.
    """
    module = loop.module
    function = module.enclosing_function(loop.node)
    if function is None or not isinstance(loop.node, ast.Call):
        return None
    call = loop.node if loop.subject in loop.node.args else module.parent(loop.node)
    for node in own_nodes(function):
        if node not in (call, loop.node) and placement.operations.works(module, node):
            return None
    wrapping = [
        site
        for site in sites_in(placement.project, module)
        if site.application is not None and site.certain and _wraps(placement, site, function)
    ]
    if len(wrapping) != 1 or wraps_policy(wrapping[0]):
        return None
    calls = [o for o in placement.of_site(wrapping[0]) if o.how != "exported"]
    if len(calls) != 1 or calls[0].how != "called" or placement.loops_of(calls[0]):
        return None
    return None if in_python_loop(calls[0].module, calls[0].node) else wrapping[0]


def wraps_scan(placement: Placement, site: Site) -> bool:
    """Return whether a checkpoint is around a scan and nothing else: RMT303 moves it."""
    loops = placement.transforms.loops(site.module)
    return any(checkpoint_of_scan(placement, loop) is site for loop in loops)


def _wraps(placement: Placement, site: Site, function: FunctionNode) -> bool:
    targets = wrapped_by(placement.project, site)
    return {t.function.node for v in targets for t in targets_of(placement.evaluator, v)} == {
        function
    }


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
