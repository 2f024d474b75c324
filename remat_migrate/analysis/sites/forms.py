"""The forms in which source code uses an Api: as a decorator, assigned, applied immediately, ..."""

from __future__ import annotations

import ast

from ..names.module import Module
from ..names.scopes import Definition


def decorates(module: Module, node: ast.expr) -> bool:
    """Return whether an expression is a decorator."""
    holder = module.parent(node)
    return isinstance(holder, Definition) and node in holder.decorator_list


def value_form(module: Module, node: ast.expr, how: str) -> tuple[str, ast.expr | None]:
    """Return the form of an Api, or a partial of it, used as a value, and its application if it has
    one.
    """
    holder = module.parent(node)
    if decorates(module, node):
        return {"": "decorator", "partial": "decorator-partial"}.get(how, "decorator-factory"), node
    if isinstance(holder, ast.Call) and holder.func is node:
        return "applied", holder
    if how == "partial":
        return "partial", None
    if isinstance(holder, ast.Assign | ast.AnnAssign | ast.NamedExpr):
        return "alias", None
    return "reference", None


def call_form(module: Module, call: ast.Call) -> str:
    """Return the form of a call that applies an Api, by its position."""
    node: ast.AST = call
    holder = module.parent(call)
    while isinstance(holder, ast.NamedExpr | ast.Starred | ast.Await):
        node, holder = holder, module.parent(holder)
    match holder:
        case ast.Call() if holder.func is node:
            return "applied"
        case ast.Call() | ast.keyword():
            return "argument"
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if (
            node in holder.decorator_list
        ):
            return "decorator-factory"
        case ast.Assign() | ast.AnnAssign():
            return "assigned"
        case ast.IfExp() | ast.BoolOp():
            return "conditional"
        case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
            return "container"
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return "container"
        case ast.Lambda():
            return "lambda"
        case ast.Return():
            return "returned"
    return "expression"
