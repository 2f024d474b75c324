"""Calls whose results are only added: branches that do not depend on each other."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..names.module import Module

_SUMS = frozenset({"sum", "mean", "average"})
_STACKS = frozenset({"array", "asarray", "stack", "list", "tuple"})


def added_calls(module: Module, calls: Sequence[ast.Call]) -> bool:
    """Return whether all the given calls are added, and none uses the result of another."""
    known = set(calls)
    for call in calls:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(node in known for arg in given for node in ast.walk(arg)):
            return False
    tops = {_top_of_sum(module, call) for call in calls}
    if len(calls) > 1:
        # `f(a) + f(b)`: one sum contains them all.
        return len(tops) == 1 and isinstance(next(iter(tops)), ast.BinOp)
    [call] = calls
    return _in_summed_comprehension(module, call) or _in_running_total(module, call)


def _top_of_sum(module: Module, node: ast.expr) -> ast.expr:
    """Return the whole sum in which an expression is a term, scaled or not."""
    while True:
        holder = module.parent(node)
        match holder:
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                node = holder
            case ast.BinOp(op=ast.Div() | ast.Mult(), left=left, right=right) if isinstance(
                right if left is node else left, ast.Constant | ast.Name
            ):
                node = holder
            case _:
                return node


def _in_summed_comprehension(module: Module, call: ast.Call) -> bool:
    """Return whether this is in `sum(f(x) for x in xs)` or `jnp.mean(jnp.array([f(x) for x in
    xs]))`.
    """
    top = _top_of_sum(module, call)
    holder = module.parent(top)
    if not isinstance(holder, ast.GeneratorExp | ast.ListComp) or holder.elt is not top:
        return False
    if isinstance(module.parent(holder), ast.comprehension):
        return False
    node: ast.expr = holder
    while True:
        around = module.parent(node)
        match around:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]) if (
                first is node
            ):
                if name in _SUMS:
                    return True
                if name not in _STACKS:
                    return False
                node = around
            case _:
                return False


def _in_running_total(module: Module, call: ast.Call) -> bool:
    """Return whether this is `total += f(x)` in a Python loop, where `f(x)` uses nothing that the
    loop computes.
    """
    top = _top_of_sum(module, call)
    statement = module.parent(top)
    match statement:
        case ast.AugAssign(target=ast.Name(id=total), op=ast.Add()):
            pass
        case ast.Assign(targets=[ast.Name(id=total)], value=ast.BinOp(op=ast.Add()) as value):
            terms = [n for n in (value.left, value.right) if isinstance(n, ast.Name)]
            if not any(term.id == total for term in terms):
                return False
        case _:
            return False
    loop = module.parent(statement)
    if not isinstance(loop, ast.For):
        return False
    changing = {
        node.id
        for inner in loop.body
        for node in ast.walk(inner)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    used = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
    return not used & changing
