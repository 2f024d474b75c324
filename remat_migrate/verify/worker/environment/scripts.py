"""Find the statements of a module that run a program: a script without a main guard."""

from __future__ import annotations

import ast
from typing import Iterable, Iterator, Set

# Functions that run a program or end the process.
_RUN = frozenset(["main", "_main", "cli", "run", "train", "evaluate", "exit", "quit"])
_RUN_OF = frozenset(
    ["app.run", "fire.Fire", "sys.exit", "os._exit", "unittest.main", "pytest.main"]
)

NOT_RUN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def effects(tree: ast.Module) -> Set[ast.stmt]:
    """Return the top-level statements that run a program, to leave out in an import."""
    return {
        statement
        for statement in tree.body
        if not isinstance(statement, NOT_RUN) and any(map(_runs, _own_nodes([statement])))
    }


def _runs(node: ast.AST) -> bool:
    """Return whether a statement calls what runs a program, and drops the result."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    called = ast.unparse(node.value.func)
    return called in _RUN or called in _RUN_OF


def _own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes that run with these statements: not those of definitions among them."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, NOT_RUN)]
