"""What a loop body does: almost nothing, work that is worth a checkpoint, or something unknown."""

from __future__ import annotations

import ast
import re
from typing import Literal

from ..names.module import Module
from ..names.scopes import Definition, FunctionNode
from ..sites.site import Site, sites_in
from ..values.callees import layers, targets_of
from ..values.values import Applied, External, Function, Instance, Parameter, Result, Value
from .applied_transforms import AppliedTransforms
from .call_graph import own_nodes
from .loops import LoopUse
from .nested_checkpoints import wrapped_by
from .placement import Placement
from .stages import in_python_loop
from .whole_and_last import wraps_policy
from .workload import does_work

Work = Literal["checkpointed", "unseen", "heavy", "light"]

_PRODUCTS = frozenset(
    {
        "dot", "matmul", "einsum", "tensordot", "dot_general", "conv", "conv_general_dilated",
        "dot_product_attention", "vmap", "apply",
    }
)  # fmt: skip
# Layers of Flax, Haiku, and Equinox that multiply matrices.
_LAYERS = re.compile(r"(?:flax|haiku|equinox)\..*(?:Dense|Linear|Conv|Attention|Einsum|MLP)")
_CHECKPOINT_WORDS = ("remat", "checkpoint", "ckpt")
_DEPTH = 3


def body_work(transforms: AppliedTransforms, loop: LoopUse) -> Work:
    """Return what an iteration of a loop does, following the project's functions a few calls deep.

    "checkpointed" includes bodies that mention a checkpoint.
    """
    if loop.loop.own_checkpoints:
        return "checkpointed"
    works = {_work(transforms, body, 0) for body in loop.bodies} or {"unseen"}
    if loop.use.subject is not None and not loop.bodies:
        return "light"  # nothing is known of it at all
    return _most(works)


def _most(works: set[Work]) -> Work:
    """Return the work that decides what is done with a loop."""
    order: tuple[Work, ...] = ("checkpointed", "heavy", "unseen")
    return next((work for work in order if work in works), "light")


def checkpoint_of_scan(placement: Placement, loop: LoopUse) -> Site | None:
    """Return the checkpoint of a function that does nothing but run a loop.

    None if it has a policy, or is called several times: each call may be one of several segments.
    """
    module, evaluator = loop.module, placement.evaluator
    function = module.enclosing_function(loop.node)
    if function is None or not isinstance(loop.node, ast.Call):
        return None
    call = loop.node if loop.use.subject in loop.node.args else module.parent(loop.node)
    for node in own_nodes(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return None
        if isinstance(node, ast.Call) and node not in (call, loop.node):
            if does_work(evaluator, module, node):
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


def _wraps(placement: Placement, site: Site, function: FunctionNode) -> bool:
    targets = wrapped_by(placement.project, site)
    return {t.function.node for v in targets for t in targets_of(placement.evaluator, v)} == {
        function
    }


def in_checkpoint(transforms: AppliedTransforms, module: Module, node: ast.AST) -> bool:
    """Return whether code is in a function of its module that is checkpointed."""
    sites = sites_in(transforms.project, module)
    applied = {site.application for site in sites}
    wrapped = {site.subject[1] for site in sites if site.subject is not None}
    for around in module.ancestors(node):
        if isinstance(around, Definition):
            if any(decorator in applied for decorator in around.decorator_list):
                return True
            names = {n.id for n in wrapped if isinstance(n, ast.Name)}
            names |= {n.attr for n in wrapped if isinstance(n, ast.Attribute)}
            if around.name in names:
                return True
        elif around in wrapped:
            return True
    return False


def _work(transforms: AppliedTransforms, value: Value, depth: int) -> Work:
    if any(isinstance(layer, Applied) for layer in layers(value)):
        return "checkpointed"
    if isinstance(value, Instance) and isinstance(value.cls, Applied):
        return "checkpointed"
    if isinstance(value, Parameter) and depth <= _DEPTH:
        # The caller passes the function: one checkpointed function among them suffices.
        passed = transforms.arguments.resolved(value)
        works = {_work(transforms, v, depth + 1) for v in passed if not isinstance(v, Parameter)}
        return "checkpointed" if "checkpointed" in works else "unseen"
    functions = [target.function for target in targets_of(transforms.evaluator, value)]
    if isinstance(value, Instance) and isinstance(value.cls, External):
        return "heavy" if _LAYERS.match(value.cls.name) else "light"
    if not functions:
        return "unseen" if isinstance(value, Parameter | Instance | Result) else "light"
    works = {_function_work(transforms, function, depth) for function in functions}
    return _most(works)


def _function_work(transforms: AppliedTransforms, function: Function, depth: int) -> Work:
    module = function.module
    for site in sites_in(transforms.project, module):
        if any(around is function.node for around in module.ancestors(site.reference)):
            return "checkpointed"
    found: set[Work] = set()
    for node in own_nodes(function.node):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.add("heavy")
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if any(word in name.lower() for word in _CHECKPOINT_WORDS):
            return "checkpointed"  # `remat_ffn(x)`, where a caller says which
        values = transforms.evaluator.values(module, node.func)
        if name in _PRODUCTS:
            found.add("heavy")
        if depth < _DEPTH:
            found |= {
                _work(transforms, v, depth + 1) for v in values if not isinstance(v, External)
            }
        for arg in node.args:
            if isinstance(arg, ast.Name | ast.Lambda | ast.Attribute) and depth < _DEPTH:
                found |= {
                    _work(transforms, v, depth + 1)
                    for v in transforms.evaluator.values(module, arg)
                    if isinstance(v, Function | Applied)
                }
    return _most(found)
