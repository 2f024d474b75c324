"""The part that a checkpoint has in a function: all of its work, its last stage, or nothing but
another checkpoint.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..names.expected_failures import in_test
from ..names.module import Module, Place
from ..names.scopes import FunctionNode, own_nodes
from ..project import Project
from ..sites.find_sites import sites_in, wrapped_by
from ..sites.site import Site
from ..values.callees import targets_of
from ..values.containers import stored_in
from ..values.values import Applied, Function, Value, Wrapped, layers, order
from .operations import (
    SAME_WORK,
    Operation,
    Operations,
    doing_the_work,
    is_head,
    outer_checkpoint,
    weight,
)
from .placement import Occurrence, Placement, placement_of
from .transforms import Derivative, derivatives_in, in_derivative_rule

_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_PYTHON_LOOPS = ast.For | ast.AsyncFor | ast.While | _COMPREHENSIONS
# "term": all of one of several terms of a sum; "bulk": all but a few single layers before and after
# it, such as an embedding and a head.
Part = Literal["whole", "last", "bulk", "term"]
# How many calls deep a checkpoint is looked for.
_DEPTH = 5


@dataclass(frozen=True, eq=False, slots=True)
class Checkpointed:
    """A checkpoint that is all, or the last stage, of what a function does.

    Attributes:
        applied: the checkpoint.
        part: which part it is.
        calls: the calls that lead to the checkpoint, outermost first, each with its module; empty
            if the function itself is the checkpoint.
    """

    applied: Applied
    part: Part
    calls: tuple[tuple[Module, ast.Call], ...] = ()


def checkpointed_parts(operations: Operations, value: Value) -> Iterator[Checkpointed]:
    """Return the checkpoints that are all, or the last stage, of what calling a value runs."""
    for inner in map(doing_the_work, sorted(operations.run_by((value,)), key=order)):
        if isinstance(inner, Applied):
            yield Checkpointed(inner, "whole")
        elif isinstance(inner, Function):
            yield from _within(operations, inner, 0)


def _within(operations: Operations, function: Function, depth: int) -> Iterator[Checkpointed]:
    """Yield the checkpoint that computes the result of a function, in it or in a function it
    calls.
    """
    module, node = function.module, function.node
    work: dict[ast.AST, Applied | None] = {}
    for inner in own_nodes(node):
        applied = operations.applied_by(module, inner) if isinstance(inner, ast.Call) else None
        if applied is not None or operations.works(module, inner):
            work[inner] = applied
    found = list(_last(operations, function, work, depth))
    yield from found
    if all(part.part == "last" for part in found):
        yield from _bulk(operations, function, work, depth)


def _last(
    operations: Operations, function: Function, work: Mapping[ast.AST, Applied | None], depth: int
) -> Iterator[Checkpointed]:
    """Yield the checkpoint that computes the result of a function from all its other work."""
    module, node = function.module, function.node
    nested = (inner for inner in own_nodes(node) if isinstance(inner, FunctionNode))
    places = sorted((*work, *nested), key=_line, reverse=True)
    last = [
        call
        for call in work
        if isinstance(call, ast.Call)
        and not python_loop(module, call)
        and _only_reaches_result(module, node, call, places)
    ]
    others = [other for other in work if other not in last]
    for call in last:
        if len(last) > 1 and (others or work[call] is None):
            return
        if others and not set(_inputs(module, call)).issuperset(others):
            return
        applied = work[call]
        found: Iterable[Checkpointed] = ()
        if applied is not None:
            found = [Checkpointed(applied, "whole" if len(last) == 1 else "term")]
        elif depth < _DEPTH:
            found = _parts_of_callee(operations, module, call, depth)
        earlier = {by.node for other in others if (by := work[other]) is not None}
        for part in found:
            if part.applied.node not in earlier:  # else one checkpoint is on all stages
                name: Part = "last" if others and part.part != "bulk" else part.part
                yield Checkpointed(part.applied, name, ((module, call), *part.calls))


def _bulk(
    operations: Operations, function: Function, work: Mapping[ast.AST, Applied | None], depth: int
) -> Iterator[Checkpointed]:
    """Yield the checkpoint on a whole stack of layers that has only single layers beside it."""
    module = function.module
    stacks = [node for node in work if not _is_single_layer(operations, module, node)]
    call = stacks[0] if len(stacks) == 1 else None
    if not isinstance(call, ast.Call) or python_loop(module, call):
        return
    applied = work[call]
    if applied is None:
        for part in _parts_of_callee(operations, module, call, depth) if depth < _DEPTH else ():
            if part.part != "last":
                yield Checkpointed(part.applied, "bulk", ((module, call), *part.calls))
    elif any(_loops(operations, t.function) for t in targets_of(operations.evaluator, applied)):
        yield Checkpointed(applied, "bulk", ((module, call),))


def _is_single_layer(operations: Operations, module: Module, node: ast.AST) -> bool:
    """Return whether an expression multiplies once."""
    if not isinstance(node, ast.Call):
        return True
    work = [operation for operation in operations.of_call(module, node) if operation.is_work]
    return [(one.kind, one.weight) for one in work] == [("product", 1)]


def _loops(operations: Operations, function: Function) -> bool:
    """Return whether a function runs stages in a loop."""
    module = function.module
    return any(
        operations.works(module, node)
        for node in own_nodes(function.node)
        if isinstance(node, ast.Call)
        if python_loop(module, node) or operations.is_loop(module, node)
    )


def _parts_of_callee(
    operations: Operations, module: Module, call: ast.Call, depth: int
) -> Iterator[Checkpointed]:
    """Yield the parts of the project's function that a call runs, if it can only be that one."""
    functions: set[Function] = set()
    for value in operations.callees(module, call):
        if any(
            isinstance(layer, Applied)
            or (isinstance(layer, Wrapped) and layer.how not in SAME_WORK)
            for layer in layers(value)
        ):
            return
        functions |= {target.function for target in targets_of(operations.evaluator, value)}
    if len(functions) == 1:
        yield from _within(operations, functions.pop(), depth + 1)


def python_loop(module: Module, node: ast.AST) -> ast.AST | None:
    """Return the innermost Python loop that evaluates an expression, in the function around it."""
    for around in module.ancestors(node):
        if isinstance(around, FunctionNode):
            return None
        if isinstance(around, _PYTHON_LOOPS):
            return around
    return None


def _only_reaches_result(
    module: Module, function: FunctionNode, call: ast.Call, places: Sequence[ast.AST]
) -> bool:
    """Return whether the result of a call reaches the function's result, and no other work.

    `places` are the work and the nested functions, from the last line to the first.
    """
    own = places.index(call)
    # The next one is asked first: most often it answers.
    if call in _inputs(module, *places[own + 1 :], *places[:own]):
        return False
    if isinstance(function, ast.Lambda):
        return True
    returns = (node for node in own_nodes(function) if isinstance(node, ast.Return))
    return call in _inputs(module, *returns)


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _inputs(module: Module, *nodes: ast.AST) -> Iterator[ast.AST]:
    """Yield what is below expressions or statements, and what the names in them are made from.

    The last one comes first.
    """
    seen: set[ast.AST] = set()
    left = list(nodes)
    queue: list[ast.AST] = []
    while queue or left:
        if not queue:
            queue += ast.iter_child_nodes(left.pop())
            continue
        part = queue.pop()
        if part in seen:
            continue
        seen.add(part)
        yield part
        queue += ast.iter_child_nodes(part)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            bindings = module.reaching(part)
            queue += [b.value for b in bindings if b.value is not None]
            queue += [one.value for one in stored_in(module, module.tree, part, bindings)]


# How many functions may lie between the two.
_MOST_BETWEEN = 5


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
    if applied is not None or depth > _MOST_BETWEEN:
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
