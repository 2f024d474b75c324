"""The part that a checkpoint has in a function: all of its work, or its last stage."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from ..names.mentions import reads_of
from ..names.module import Module, once
from ..names.scopes import FunctionNode, own_nodes
from ..values.callees import layers, order, targets_of
from ..values.values import Applied, Bound, Function, Partial, Value, Wrapped
from .operations import SAME_WORK, Operations

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
    for inner in sorted(operations.run_by((value,)), key=order):
        while isinstance(inner, Partial | Bound) or (
            isinstance(inner, Wrapped) and inner.how in SAME_WORK
        ):
            inner = inner.func
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
    yield from found or _bulk(operations, function, work, depth)


def _last(
    operations: Operations, function: Function, work: Mapping[ast.AST, Applied | None], depth: int
) -> Iterator[Checkpointed]:
    """Yield the checkpoint that computes the result of a function from all its other work."""
    module, node = function.module, function.node
    last = [
        call
        for call in work
        if isinstance(call, ast.Call)
        and not in_python_loop(module, call)
        and _only_reaches_result(operations, module, node, call)
    ]
    others = [other for other in work if other not in last]
    for call in last:
        if len(last) > 1 and (others or work[call] is None):
            return
        if others and not _inputs(module, call).issuperset(others):
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
    if not isinstance(call, ast.Call) or in_python_loop(module, call):
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
    return [(one.kind, one.weight, one.checkpoint) for one in work] == [("product", 1, None)]


def _loops(operations: Operations, function: Function) -> bool:
    """Return whether a function runs stages in a loop."""
    module = function.module
    return any(
        operations.works(module, node)
        for node in own_nodes(function.node)
        if isinstance(node, ast.Call)
        if in_python_loop(module, node) or operations.is_loop(module, node)
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


def in_python_loop(module: Module, node: ast.AST) -> bool:
    """Return whether an expression is evaluated in a Python loop of the function around it."""
    for around in module.ancestors(node):
        if isinstance(around, FunctionNode):
            return False
        if isinstance(around, _PYTHON_LOOPS):
            return True
    return False


def _only_reaches_result(
    operations: Operations, module: Module, function: FunctionNode, call: ast.Call
) -> bool:
    """Return whether the result of a call only reaches the function's result, through light
    work.
    """
    queue: list[ast.expr] = [call]
    seen: set[ast.AST] = set()
    returned = False
    while queue:
        node: ast.AST = queue.pop()
        holder = module.parent(node)
        while holder is not None and _keeps_value(operations, module, holder, node):
            node, holder = holder, module.parent(holder)
        names = _stored(holder, node)
        if names is not None:
            assert holder is not None
            loads = _loads(module, function, names, holder)
            queue += [load for load in loads if load not in seen]
            seen.update(loads)
        elif isinstance(holder, ast.Return | ast.Lambda):
            around = holder if isinstance(holder, ast.Lambda) else module.enclosing_function(holder)
            if around is not function:
                return False
            returned = True
        elif not isinstance(holder, ast.Expr):
            return False
    return returned


def _keeps_value(operations: Operations, module: Module, holder: ast.AST, node: ast.AST) -> bool:
    """Return whether an expression has the value of a part of it, or something light made from
    it.
    """
    match holder:
        case ast.BinOp(op=op):
            return not isinstance(op, ast.MatMult)
        case ast.Subscript():
            return holder.value is node
        case ast.UnaryOp() | ast.Compare() | ast.keyword() | ast.Attribute() | ast.Starred():
            return True
        case ast.Tuple() | ast.List() | ast.Dict():
            return True
        case ast.Call():
            return _collects(holder, node) is None and not operations.works(module, holder)
    return False


def _collects(call: ast.AST, node: ast.AST) -> str | None:
    """Return the container that receives a value: `metrics.update(loss=loss)`."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr) as func) if (
            attr in ("append", "extend", "update") and func is not node
        ):
            return name
    return None


def _stored(holder: ast.AST | None, node: ast.AST) -> set[str] | None:
    """Return the names under which a statement or call keeps a value; None if it does not keep
    it.
    """
    match holder:
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return _names(target)
        case ast.AugAssign(target=ast.Name(id=total), op=op) if not isinstance(op, ast.MatMult):
            return {total}
    name = None if holder is None else _collects(holder, node)
    return None if name is None else {name}


def _loads(
    module: Module, function: FunctionNode, names: set[str], statement: ast.AST
) -> list[ast.Name]:
    """Return where names are read that may hold what a statement or call keeps under them."""
    found: dict[ast.Name, None] = {}
    for name in sorted(names):
        every = reads_of(module, name) or {}
        bindings: Iterable[ast.AST] = every
        if _binds(statement, name):
            bindings = (statement, *_added_to(module).get(name, ()))
        for binding in bindings:
            found |= dict.fromkeys(chain.from_iterable(every.get(binding, {}).values()))
    return [load for load in found if function in module.ancestors(load)]


@once
def _added_to(module: Module) -> dict[str, list[ast.AugAssign]]:
    """Return the statements of a module that add to the value of a name, by name."""
    found: dict[str, list[ast.AugAssign]] = {}
    for node in module.nodes:
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(node)
    return found


def _binds(statement: ast.AST, name: str) -> bool:
    """Return whether a statement rebinds a name, rather than adding to its value."""
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for target in targets
        if target is not None
        for node in ast.walk(target)
    )


def _names(target: ast.expr) -> set[str] | None:
    match target:
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return {name}
        case ast.Tuple(elts=parts) if all(isinstance(part, ast.Name) for part in parts):
            return {part.id for part in parts if isinstance(part, ast.Name)}
    return None


def _inputs(module: Module, call: ast.Call) -> set[ast.AST]:
    """Return what the input of a call comes from: its arguments, and what names in them are bound
    to.
    """
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    seen: set[ast.AST] = set()
    while given:
        for node in ast.walk(given.pop()):
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                given += [b.value for b in module.reaching(node) if b.value is not None]
    return seen
