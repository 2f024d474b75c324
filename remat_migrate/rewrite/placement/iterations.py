"""The iterations of a Python loop: which of them come before the last.

for p in params:  ->  for index, p in enumerate(params):   # index < len(params) - 1
"""

from __future__ import annotations

import ast

from ...analysis import Module
from ...analysis.names.scopes import FunctionNode
from ...codemod.changes import Change, Code, Replace
from ..arguments.free_names import free_name, words_in
from ..refusal import Refused


def before_last(module: Module, statement: ast.stmt, left: int) -> tuple[str, list[Change]]:
    """Return the condition that an iteration is not one of the last, and changes that count them.

    Args:
        module: the module.
        statement: a statement in the loop.
        left: how many iterations are the last.

    Raises:
        Refused: no loop that has a length repeats the statement.
    """
    loop = loop_around(module, statement)
    count = length(loop)
    last = str(int(count) - left) if count.isdigit() else f"{count} - {left}"
    match loop.iter, loop.target:
        case (ast.Call(func=ast.Name("range")), ast.Name(index)) | (
            ast.Call(func=ast.Name("enumerate")),
            ast.Tuple(elts=[ast.Name(index), _]),
        ) if index != "_":
            return f"{index} < {last}", []
    index = free_name("index", words_in(module))
    counting: list[Change] = [
        Replace(module, loop.target, Code(f"{index}, {ast.unparse(loop.target)}")),
        Replace(module, loop.iter, Code.of("enumerate({items})", items=loop.iter)),
    ]
    return f"{index} < {last}", counting


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
