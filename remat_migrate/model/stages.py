"""What a function does with a checkpointed one: the whole of its work, or the last stage of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .evaluate import Evaluator
from .module import Module
from .reach import own_nodes
from .scopes import FunctionNode
from .values import Applied, Bound, Function, Instance, Partial, Value, Wrapped

# What a loss does with the output of a model: reductions and elementwise functions, which keep
# little. By the last part of the name.
_SMALL = frozenset(
    {
        "sum", "mean", "max", "min", "nansum", "nanmean", "average", "vdot", "square",
        "abs", "absolute", "where", "sqrt", "log", "log1p", "exp", "tanh", "asarray", "array",
        "astype", "reshape", "ravel", "squeeze", "expand_dims", "l2_loss",
        "squared_error", "huber_loss", "subtract", "add", "multiply", "divide", "float32",
        "norm", "stack", "real", "item", "float", "clip", "maximum", "minimum", "power", "len",
        "tuple", "list", "dict", "log_softmax", "one_hot", "take_along_axis",
        "softmax_cross_entropy", "softmax_cross_entropy_with_integer_labels",
        "sigmoid_binary_cross_entropy", "stop_gradient",
    }
)  # fmt: skip
# Wrapped in these, a function does the same work; a derivative or a rule is another one.
_SAME_WORK = frozenset(
    {
        "jax.jit", "jax.pmap", "jax.vmap", "jax.named_call", "jax.shard_map",
        "jax.experimental.shard_map.shard_map", "jax.experimental.pjit.pjit",
        "equinox.filter_jit", "equinox.filter_vmap", "equinox.filter_pmap", "haiku.jit",
        "haiku.vmap", "haiku.named_call", "flax.nnx.jit", "flax.linen.jit",
    }
)  # fmt: skip

_PLAIN = ast.Name | ast.Attribute | ast.Constant | ast.Starred

Part = Literal["whole", "last"]


@dataclass(frozen=True, eq=False, slots=True)
class Checkpointed:
    """A checkpoint that is all, or the last stage, of what a function does.

    Attributes:
        applied: the checkpoint.
        part: which of the two.
        call: where the function calls it; None where the function itself is the checkpoint.
        module: where that is.
    """

    applied: Applied
    part: Part
    call: ast.Call | None = None
    module: Module | None = None


def checkpointed_parts(evaluator: Evaluator, value: Value) -> Iterator[Checkpointed]:
    """The checkpoints that are the whole or the last stage of what calling a value runs."""
    while True:
        match value:
            case Applied():
                yield Checkpointed(value, "whole")
                return
            case Partial(func=inner) | Bound(func=inner):
                value = inner
            case Wrapped(how=how, func=inner) if how in _SAME_WORK:
                value = inner
            case Instance(cls=Applied() as applied):
                yield Checkpointed(applied, "whole")
                return
            case Function():
                yield from _within(evaluator, value)
                return
            case _:
                return


def _within(evaluator: Evaluator, function: Function) -> Iterator[Checkpointed]:
    """Of a function that gives what a checkpoint gives, which it calls once."""
    module, node = function.module, function.node
    found: list[tuple[ast.Call, Applied]] = []
    others: list[ast.AST] = []
    for inner in own_nodes(node):
        if isinstance(inner, ast.For | ast.AsyncFor | ast.While | ast.comprehension):
            return
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.MatMult):
            others.append(inner)
        if not isinstance(inner, ast.Call):
            continue
        applied = applied_by(evaluator, module, inner)
        if applied is not None:
            found.append((inner, applied))
        elif does_work(evaluator, module, inner):
            others.append(inner)
    last = [(call, applied) for call, applied in found if _is_way_out(module, node, call)]
    if len(last) != 1:
        return
    [(call, applied)] = last
    earlier = [(other, by) for other, by in found if other is not call]
    if any(by.node is applied.node for _, by in earlier):
        return  # one checkpoint for all stages
    others += (other for other, _ in earlier)
    if not others:
        yield Checkpointed(applied, "whole", call, module)
    elif all(_precedes(module, call, other) for other in others):
        yield Checkpointed(applied, "last", call, module)


def applied_by(evaluator: Evaluator, module: Module, call: ast.Call) -> Applied | None:
    """The checkpoint that a call runs whatever way the code took; one that is a choice is none."""
    values = evaluator.values(module, call.func)
    found: set[Applied | None] = set()
    for value in values:
        inner: Value = value
        while isinstance(inner, Partial) or (isinstance(inner, Wrapped) and inner.how == "jax.jit"):
            inner = inner.func
        match inner:
            case Applied() as applied:
                found.add(applied)
            case Instance(cls=Applied() as applied):
                found.add(applied)
            case Bound(func=Applied() as applied):
                found.add(applied)
            case Bound(receiver=Instance(cls=Applied() as applied)) if _is_apply(call):
                found.add(applied)
            case _:
                found.add(None)
    return next(iter(found)) if len(found) == 1 else None


def _is_apply(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "apply"


def does_work(evaluator: Evaluator, module: Module, call: ast.Call) -> bool:
    """Whether a call may compute more than a sum: no small function, none that makes functions."""
    return not _is_small(call) and not _makes_function(evaluator, module, call)


def _is_small(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _SMALL
    return False


def _makes_function(evaluator: Evaluator, module: Module, call: ast.Call) -> bool:
    """Whether a call makes the function that is called, or a module: no work is done by it."""
    values = evaluator.values(module, call)
    return bool(values) and all(
        isinstance(v, Applied | Partial | Instance | Wrapped | Function) for v in values
    )


def _is_way_out(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    """Whether the result of a call goes to the function's result alone, through what is small."""
    queue: list[ast.expr] = [call]
    seen: set[ast.expr] = set()
    while queue:
        node: ast.AST = queue.pop()
        while True:
            holder = module.parent(node)
            match holder:
                case ast.Return():
                    break
                case ast.Lambda() if holder is function:
                    break
                case ast.BinOp() if not isinstance(holder.op, ast.MatMult):
                    pass
                case ast.UnaryOp() | ast.Tuple() | ast.keyword() | ast.Attribute() | ast.Starred():
                    pass
                case ast.Subscript() if holder.value is node:
                    pass
                case ast.Call() if _is_small(holder):
                    pass
                case ast.Assign(targets=[target]):
                    names = _names(target)
                    if names is None:
                        return False
                    loads = _loads(module, function, names, holder)
                    queue += [load for load in loads if load not in seen]
                    seen.update(loads)
                    break
                case _:
                    return False
            node = holder
    return True


def _loads(
    module: Module, function: FunctionNode, names: set[str], statement: ast.Assign
) -> list[ast.Name]:
    """Where the names that a statement binds are read."""
    return [
        load
        for load in ast.walk(function)
        if isinstance(load, ast.Name)
        and isinstance(load.ctx, ast.Load)
        and load.id in names
        and any(binding.node is statement for binding in module.reaching(load))
    ]


def _names(target: ast.expr) -> set[str] | None:
    match target:
        case ast.Name(id=name):
            return {name}
        case ast.Tuple(elts=parts) if all(isinstance(part, ast.Name) for part in parts):
            return {part.id for part in parts if isinstance(part, ast.Name)}
    return None


def _precedes(module: Module, call: ast.Call, other: ast.AST) -> bool:
    """Whether what a call is given comes from other work: an argument, or a name bound to it."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    seen: set[ast.AST] = set()
    while given:
        arg = given.pop()
        for node in ast.walk(arg):
            if node is other:
                return True
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in seen:
                seen.add(node)
                given += [b.value for b in module.reaching(node) if b.value is not None]
    return False


def only_call(function: Function) -> ast.Call | None:
    """The call that is all that a function does: `lambda x: f(x)`, `return f(x)`."""
    node = function.node
    if isinstance(node, ast.Lambda):
        body: ast.expr | None = node.body
    else:
        *before, last = node.body
        documented = all(
            isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in before
        )
        body = last.value if documented and isinstance(last, ast.Return) else None
    if not isinstance(body, ast.Call):
        return None
    given = [*body.args, *(keyword.value for keyword in body.keywords)]
    plain = all(isinstance(arg, _PLAIN) for arg in given)
    return body if plain else None
