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
            self._declared = _Declarations(self)
            self._declared.collect()
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
    stack: list[ast.AST] = (
        [function.body] if isinstance(function, ast.Lambda) else list(function.body)
    )
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, FunctionNode | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(node))


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


class _Declarations(ast.NodeVisitor):
    """The names bound directly in one scope, and its global and nonlocal declarations."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.bound: set[str] = set()
        self.global_names: set[str] = set()
        self.nonlocal_names: set[str] = set()

    def collect(self) -> None:
        node = self.scope.node
        if isinstance(node, ast.Lambda):
            self.visit(node.body)
        else:
            for statement in node.body:
                self.visit(statement)
        if isinstance(node, FunctionNode):
            self.bound |= {p.arg for p in parameters(node)}
        self.bound -= self.global_names | self.nonlocal_names

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.bound.add(node.name)
        for part in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if part is not None:
                self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bound.add(node.name)
        for part in (*node.decorator_list, *node.bases):
            self.visit(part)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def _comprehension(self, node: ast.expr) -> None:
        # Targets are local to the comprehension; only `:=` inside binds a name outside.
        for child in ast.walk(node):
            if isinstance(child, ast.NamedExpr):
                self.bound.add(child.target.id)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)

    def visit_Global(self, node: ast.Global) -> None:
        self.global_names.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.nonlocal_names.update(node.names)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.bound.add(alias.asname or alias.name.partition(".")[0])

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.bound.add(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.bound.add(node.rest)
        self.generic_visit(node)
