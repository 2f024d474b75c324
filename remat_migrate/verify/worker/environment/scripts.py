"""Find the statements of a module that run a program: a script without a main guard."""

from __future__ import annotations

import ast
import builtins
from typing import Iterator, List, Set

# Functions that run a program and end the process, with the module that has them.
_RUNS = {
    "absltest": {"main"},
    "app": {"run"},
    "fire": {"Fire"},
    "pytest": {"main"},
    "sys": {"exit"},
    "os": {"_exit", "abort"},
    "typer": {"run"},
    "unittest": {"main"},
    "uvicorn": {"run"},
}
_ENDS = frozenset(["exit", "quit"])
_MAIN = frozenset(["main", "_main", "cli", "run", "train", "evaluate"])

_Loop = (ast.For, ast.While, ast.AsyncFor)
NOT_RUN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def effects(tree: ast.Module) -> Set[ast.stmt]:
    """Return the top-level statements to leave out when a module is imported.

    These run the program: they call `main` or what ends the process, or loop over steps whose
    results are the arguments of the next.
    """
    functions = {s.name: s for s in tree.body if isinstance(s, ast.FunctionDef)}
    others = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            others.add(node.asname or node.name.partition(".")[0])
    running = {n for n, f in functions.items() if n in _MAIN or _has_steps(f.body, others)}
    found: Set[ast.stmt] = set()
    for statement in tree.body:
        if isinstance(statement, NOT_RUN) or _imports(statement):
            continue
        if _runs(statement, running) or _has_steps([statement], others):
            found.add(statement)
    return found


def _imports(statement: ast.stmt) -> bool:
    return any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in _own_nodes([statement]))


def _runs(statement: ast.stmt, running: Set[str]) -> bool:
    """Return whether a statement calls one of these functions, or what runs a program.

    An assignment gets a value from a call, so only calls whose results are dropped count.
    """
    for node in _own_nodes([statement]):
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call):
            function = call.func
            if isinstance(function, ast.Name) and function.id in running | _ENDS:
                return True
            if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
                if function.attr in _RUNS.get(function.value.id, ()):
                    return True
    return False


def _has_steps(body: List[ast.stmt], others: Set[str]) -> bool:
    """Return whether a loop passes results of a call to the same call: `s = step(s, x)`.

    Functions of libraries, whose names are in `others`, do not count: `path = join(path, name)`.
    """
    for node in _own_nodes(body):
        for inner in _own_nodes(node.body) if isinstance(node, _Loop) else ():
            if isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Call):
                call = inner.value
                targets = {name for t in inner.targets for name in _names(t, ast.Store)}
                arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
                passed = {name for each in arguments for name in _names(each, ast.Load)}
                if targets & passed and not others & set(_names(call.func, ast.Load)):
                    return True
    return False


def _names(tree: ast.AST, context: type) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, context):
            yield node.id


def _own_nodes(body: List[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes that run with these statements: not those of definitions among them."""
    waiting: List[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, NOT_RUN):
                waiting.append(child)
