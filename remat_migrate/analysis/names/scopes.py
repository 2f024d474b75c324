"""The scopes and bindings of a module.

The order of assignments matters: `f = jax.checkpoint(f)` reads the old `f` and binds a new one.
Inside a scope the analysis is flow-sensitive (branches are joined, and the bodies of loops see
earlier iterations).
A name from an enclosing function may have its binding at the `def` or any later one; a name from
the module has its binding at the end of the module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
ScopeNode = ast.Module | ast.ClassDef | FunctionNode
BindingKind = Literal[
    "assign", "element", "with", "augment", "def", "class", "import", "parameter", "opaque"
]


@dataclass(frozen=True, eq=False, slots=True)
class Binding:
    """One place that binds a name.

    Attributes:
        name: the name.
        kind: "assign" (the value of `value`), "element" (an element of it), "with" (what it enters
            to), "augment" (`x += value`), or the kind of the statement; "opaque" for bindings that
            are not followed (except, match).
        node: the statement, `ast.arg`, or `ast.alias`.
        scope: the scope in which the name is bound.
        value: the expression, for the first four kinds.
        path: the indices by which a tuple value is unpacked; -1 for a starred target.
        statement: the import statement for an "import", else None.
    """

    name: str
    kind: BindingKind
    node: ast.AST
    scope: Scope
    value: ast.expr | None = None
    path: tuple[int, ...] = ()
    statement: ast.Import | ast.ImportFrom | None = None


@dataclass(eq=False, slots=True)
class Scope:
    """A module, class, function, or lambda.

    Attributes:
        node: its node.
        parent: the scope around it.
        bindings: the bindings in it, by name; known once its `Flow` is.
        global_names, nonlocal_names: the names that it declares so.
    """

    node: ScopeNode
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    global_names: set[str] = field(default_factory=set)
    nonlocal_names: set[str] = field(default_factory=set)

    @property
    def is_function(self) -> bool:
        """Whether the scope is a function or lambda."""
        return isinstance(self.node, FunctionNode)

    @property
    def is_class(self) -> bool:
        """Whether the scope is a class body."""
        return isinstance(self.node, ast.ClassDef)


def own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, without those of nested functions and classes."""
    stack: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else [*function.body]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, FunctionNode | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(node))


def body_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, including those of nested functions."""
    for part in [function.body] if isinstance(function, ast.Lambda) else function.body:
        yield from ast.walk(part)


def parameters(node: FunctionNode) -> list[ast.arg]:
    """Return all parameters of a function in order, including `*args` and `**kwargs`."""
    a = node.args
    found = [*a.posonlyargs, *a.args]
    if a.vararg:
        found.append(a.vararg)
    found += a.kwonlyargs
    if a.kwarg:
        found.append(a.kwarg)
    return found


def target_bindings(
    target: ast.expr,
    value: ast.expr | None,
    kind: BindingKind,
    statement: ast.AST,
    scope: Scope,
    path: tuple[int, ...] = (),
) -> Iterator[Binding]:
    """Yield the bindings made by assigning `value` to `target`."""
    if isinstance(target, ast.Name):
        yield Binding(target.id, kind, statement, scope, value, path)
    elif isinstance(target, ast.Starred):
        yield from target_bindings(target.value, value, kind, statement, scope, (*path, -1))
    elif isinstance(target, ast.Tuple | ast.List):
        starred = False
        for index, part in enumerate(target.elts):
            starred = starred or isinstance(part, ast.Starred)
            step = -1 if starred else index
            inner = part.value if isinstance(part, ast.Starred) else part
            yield from target_bindings(inner, value, kind, statement, scope, (*path, step))
