"""The iterations of a Python loop, and how many there are."""

from __future__ import annotations

import ast

from ...analysis import Module
from ...analysis.names.scopes import FunctionNode
from ..refusal import Refused


def loop_around(module: Module, statement: ast.stmt) -> ast.For:
    """Return the only loop that repeats a statement.

    Raises:
        Refused: it is not in exactly one `for` loop.
    """
    loops: list[ast.AST] = []
    for around in module.ancestors(statement):
        if isinstance(around, FunctionNode):
            break
        if isinstance(around, ast.For | ast.While | ast.AsyncFor):
            loops.append(around)
    match loops:
        case [ast.For() as loop]:
            return loop
    reason = "the line does not run in one `for` loop, so that no iteration is known as the last"
    raise Refused(reason, module, statement)


def length(loop: ast.For) -> str:
    """Return the number of iterations as code.

    Raises:
        Refused: it is unknown, or computing it again may have another result.
    """
    match loop.iter:
        case ast.Call(ast.Name("range"), [stop], []):
            return ast.unparse(stop)
        case ast.Call(ast.Name("enumerate" | "zip"), [items, *_], []) | items:
            if isinstance(items, ast.Name | ast.Attribute):
                return f"len({ast.unparse(items)})"
    raise Refused("the length of the loop is unknown")
