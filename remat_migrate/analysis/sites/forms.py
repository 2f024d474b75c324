"""The forms in which source code uses an Api: as a decorator, assigned, applied immediately, ..."""

from __future__ import annotations

import ast

from ..names.module import Module
from ..names.scopes import Definition

_FORMS: dict[type, str] = {
    **dict.fromkeys((ast.Call, ast.keyword), "argument"),
    **dict.fromkeys((ast.Assign, ast.AnnAssign, ast.NamedExpr), "assigned"),
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


def form_of(module: Module, node: ast.expr, how: str) -> tuple[str, ast.expr | None]:
    """Return the form of a site by the position of an expression, and its application, if any.

    `how` says what the expression is: "applied", the call of an Api; "factory", a call that passes
    only options; "partial"; or "", an Api by its name.
    """
    holder = module.parent(node)
    if decorates(module, node):
        return {"": "decorator", "partial": "decorator-partial"}.get(how, "decorator-factory"), node
    if isinstance(holder, ast.Call) and holder.func is node:
        return "applied", node if how == "applied" else holder
    if how == "applied":
        return _FORMS.get(type(holder), "expression"), node
    if how == "partial":
        return "partial", None
    is_alias = isinstance(holder, ast.Assign | ast.AnnAssign | ast.NamedExpr)
    return "alias" if is_alias else "reference", node if how == "factory" else None
