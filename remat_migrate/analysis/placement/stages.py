"""The part that a checkpoint has in a function: all of its work, or its last stage."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..names.module import Module
from ..names.scopes import FunctionNode, own_nodes
from ..values.callees import targets_of
from ..values.containers import stored_in
from ..values.values import Applied, Function, Value, Wrapped, layers, order
from .operations import SAME_WORK, Operations, doing_the_work

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
