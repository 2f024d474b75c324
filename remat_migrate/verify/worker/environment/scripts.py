"""Find the statements of a module that run a program: a script without a main guard."""

from __future__ import annotations

import ast
from typing import Iterable, Iterator, Set

# Functions that run a program or end the process.
_RUN = frozenset(["main", "_main", "cli", "run", "train", "evaluate", "exit", "quit"])
_RUN_OF = frozenset(
    ["app.run", "fire.Fire", "sys.exit", "os._exit", "unittest.main", "pytest.main"]
)

_LOOPS = (ast.For, ast.While)
NOT_RUN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def effects(tree: ast.Module) -> Set[ast.stmt]:
    """Return the top-level statements to leave out when a module is imported.

    These run the program: they call what does, or loop over steps of the module whose results are
    the arguments of the next.
    """
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {
        statement
        for statement in tree.body
        if not isinstance(statement, NOT_RUN)
        if any(_runs(node) or _has_steps(node, own) for node in _own_nodes([statement]))
    }


def _runs(node: ast.AST) -> bool:
    """Return whether a statement calls what runs a program, and drops the result."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    called = ast.unparse(node.value.func)
    return called in _RUN or called in _RUN_OF


def _has_steps(node: ast.AST, own: Set[str]) -> bool:
    """Return whether a loop passes results of the module's functions on: `s = step(s, x)`."""
    for inner in _own_nodes(node.body) if isinstance(node, _LOOPS) else ():
        if isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Call):
            names = {n.id for n in ast.walk(inner.value) if isinstance(n, ast.Name)}
            targets = (n for target in inner.targets for n in ast.walk(target))
            if own & names and any(isinstance(n, ast.Name) and n.id in names for n in targets):
                return True
    return False


def _own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes that run with these statements: not those of definitions among them."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, NOT_RUN)]
