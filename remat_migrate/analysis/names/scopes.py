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
    """A module, class, function, or lambda with the names bound in it."""

    node: ScopeNode
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    _declared: _Declarations | None = None

    @property
    def _declarations(self) -> _Declarations:
        # On first use: most scopes of a file are never asked.
        if self._declared is None:
            self._declared = _declarations(self.node)
        return self._declared

    @property
    def bound(self) -> set[str]:
        """The names bound in the scope."""
        return self._declarations.bound

    @property
    def global_names(self) -> set[str]:
        """The names declared `global`."""
        return self._declarations.global_names

    @property
    def nonlocal_names(self) -> set[str]:
        """The names declared `nonlocal`."""
        return self._declarations.nonlocal_names

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


@dataclass(slots=True)
class _Declarations:
    """The names bound directly in one scope, and its global and nonlocal declarations."""

    bound: set[str] = field(default_factory=set)
    global_names: set[str] = field(default_factory=set)
    nonlocal_names: set[str] = field(default_factory=set)


def _declarations(scope: ScopeNode) -> _Declarations:
    found = _Declarations()
    if isinstance(scope, FunctionNode):
        found.bound.update(parameter.arg for parameter in parameters(scope))
    waiting: list[ast.AST | None]
    waiting = [scope.body] if isinstance(scope, ast.Lambda) else [*scope.body]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Name():
                if not isinstance(node.ctx, ast.Load):
                    found.bound.add(node.id)
            case None | ast.Constant() | ast.Lambda():
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found.bound.add(node.name)
                waiting += (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults)
            case ast.ClassDef():
                found.bound.add(node.name)
                waiting += (*node.decorator_list, *node.bases)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                # Targets are local to the comprehension; only `:=` inside binds a name outside.
                inner = (n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
                found.bound.update(named.target.id for named in inner)
            case ast.Global():
                found.global_names.update(node.names)
            case ast.Nonlocal():
                found.nonlocal_names.update(node.names)
            case ast.Import() | ast.ImportFrom():
                found.bound.update(a.asname or a.name.partition(".")[0] for a in node.names)
            case _:
                # Of `except ... as name`, `case name`, and `case {**rest}`.
                name = getattr(node, "name", None) or getattr(node, "rest", None)
                if isinstance(name, str):
                    found.bound.add(name)
                waiting += ast.iter_child_nodes(node)
    found.bound -= found.global_names | found.nonlocal_names
    return found
