"""Instrument a module: below each definition of a unit, a statement passes it to a recorder.

The worker puts the recorder among the builtins. Where there is none, the statement changes nothing,
so the instrumented module also runs on its own.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterator

from ..errors import VerificationError

RECORDER = "__remat_migrate_unit__"
_RECORDED = (
    'if "{name}" in locals():\n'  # it may be unbound, as after `(x and (f := g))`
    '    {name} = __import__("builtins").__dict__'
    f'.get("{RECORDER}", lambda unit: lambda function: function)'
    "({unit!r})({name})"
)


def instrument(text: str, units: Collection[str], path: str) -> str:
    """Return a module's text with a recorder on every definition of the units.

    Args:
        text: the module's text.
        units: qualified names: `attention_block`, `Block.__call__`.
        path: the file's path in the project. The recorder is called with `path::unit`.

    Raises:
        VerificationError: this interpreter cannot parse the text.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        if not _insert(tree.body, "", units, path):
            return text
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise VerificationError(f"{path} cannot be parsed: {error}") from error


def _insert(body: list[ast.stmt], owner: str, units: Collection[str], path: str) -> bool:
    """Put recorders into the body of a module, class, or statement; return whether there are any.

    `owner` is the class, as a prefix of names.
    """
    found = False
    for statement in tuple(body):
        inside = f"{owner}{statement.name}." if isinstance(statement, ast.ClassDef) else owner
        for suite in _suites(statement):
            found |= _insert(suite, inside, units, path)
        for name in sorted(_bound(statement)):
            if owner + name in units:
                code = _RECORDED.format(name=name, unit=f"{path}::{owner}{name}")
                body.insert(body.index(statement) + 1, ast.parse(code).body[0])
                found = True
    return found


def _suites(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Return the suites of a compound statement that run with it."""
    match statement:
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            return [statement.body, statement.orelse]
        case ast.With() | ast.AsyncWith() | ast.ClassDef():
            return [statement.body]
        case ast.Try() | ast.TryStar():
            handlers = [handler.body for handler in statement.handlers]
            return [statement.body, *handlers, statement.orelse, statement.finalbody]
        case ast.Match():
            return [case.body for case in statement.cases]
    return []


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names to which a statement binds a function or a value."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return {name}
        case ast.Assign(targets=targets, value=value):
            parts: list[ast.AST] = [*targets, value]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            parts = [target, value]
        case ast.Expr(value=value):
            parts = [value]
        case _:
            return set()
    return {
        node.id
        for part in parts
        for node in _same_scope(part)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _same_scope(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    inner = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    if not isinstance(node, inner):
        for child in ast.iter_child_nodes(node):
            yield from _same_scope(child)
