"""The iterations of a Python loop: which of them come before the last.

for p in params:  ->  for i, p in enumerate(params):   # i < len(params) - 1
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
    count, counted = counter(loop)
    changes: list[Change] = []
    if isinstance(counted, ast.Name) and counted.id != "_":
        index = counted.id
    else:
        index = free_name("index", words_in(module))
        if counted is not None:
            changes = [Replace(module, counted, Code(index))]
        else:
            target = ast.unparse(loop.target)
            changes = [
                Replace(module, loop.target, Code(f"{index}, {target}")),
                Replace(module, loop.iter, Code.of("enumerate({items})", items=loop.iter)),
            ]
    return f"{index} < {count} - {left}", changes


def loop_around(module: Module, statement: ast.stmt) -> ast.For:
    """Return the only loop that repeats a statement.

    Raises:
        Refused: there is none, or more than one.
    """
    found: list[ast.For] = []
    for around in module.ancestors(statement):
        if isinstance(around, FunctionNode):
            break
        if isinstance(around, ast.While | ast.AsyncFor):
            raise Refused("a `while` loop runs the stage", module, around)
        if isinstance(around, ast.For):
            found.append(around)
    if len(found) != 1:
        reason = (
            "the line does not run in one `for` loop, so that no iteration is known as the last"
        )
        raise Refused(reason, module, statement)
    return found[0]


def counter(loop: ast.For) -> tuple[str, ast.expr | None]:
    """Return the number of iterations as code, and the target that counts them from 0, if any."""
    match loop.iter, loop.target:
        case ast.Call(ast.Name("range"), [stop], []), target:
            return ast.unparse(stop), target
        case ast.Call(ast.Name("enumerate"), [items], []), ast.Tuple(elts=[target, _]):
            return f"len({ast.unparse(_sized(items))})", target
    return f"len({ast.unparse(_sized(loop.iter))})", None


def _sized(items: ast.expr) -> ast.expr:
    """Return an expression with as many elements, which can be evaluated again."""
    match items:
        case ast.Name() | ast.Attribute():
            return items
        case ast.Subscript(value=inner) if _sized(inner):
            return items
        case ast.Call(ast.Name("zip" | "reversed" | "list" | "tuple"), [first, *_], _):
            return _sized(first)
        case ast.Call(ast.Attribute(value=inner, attr="items" | "values" | "keys"), [], []):
            return _sized(inner)
    raise Refused("the length of the loop is unknown")
