"""The forms in which source code uses an Api: as a decorator, assigned, applied immediately, ..."""

from __future__ import annotations

import ast

from ..names.module import Module
from ..names.scopes import Definition

_FORMS: dict[type, str] = {
    **dict.fromkeys((ast.Call, ast.keyword), "argument"),
    **dict.fromkeys((ast.Assign, ast.AnnAssign), "assigned"),
    **dict.fromkeys((ast.IfExp, ast.BoolOp), "conditional"),
    **dict.fromkeys((ast.List, ast.Tuple, ast.Set, ast.Dict), "container"),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), "container"),
    ast.Lambda: "lambda",
    ast.Return: "returned",
}


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
    if isinstance(holder, ast.Call) and holder.func is node:
        return "applied"
    if isinstance(holder, Definition) and node in holder.decorator_list:
        return "decorator-factory"
    return _FORMS.get(type(holder), "expression")
