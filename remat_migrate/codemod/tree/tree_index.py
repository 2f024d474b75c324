"""What is asked of a tree again and again, from one walk: parents, and names with their uses."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import TypeVar

Node = TypeVar("Node")


class TreeIndex:
    """The nodes of one tree.

    Attributes:
        tree: the tree.
        parents: the node that holds each node.
        names: every use of a name, read or written, by the name.
        binders: statements that bind a name other than by assigning to it, or declare it global,
            by the name: functions, classes, `global`.
        imports: the import statements.
        assignments: `name = value`, by the name.
        strings: the strings with their text.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        self.names: defaultdict[str, list[ast.Name]] = defaultdict(list)
        self.binders: defaultdict[str, list[ast.AST]] = defaultdict(list)
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.assignments: defaultdict[str, list[ast.Assign]] = defaultdict(list)
        self.strings: list[tuple[ast.Constant, str]] = []
        stack: list[ast.AST] = [tree]
        while stack:
            node = stack.pop()
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
                stack.append(child)
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name):
                self.names[name].append(node)
            case ast.Constant(value=str(text)):
                self.strings.append((node, text))
            case ast.Assign(targets=[ast.Name(id=name)]):
                self.assignments[name].append(node)
            case ast.Import() | ast.ImportFrom():
                self.imports.append(node)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.binders[name].append(node)
            case ast.ClassDef(name=name):
                self.binders[name].append(node)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                for name in names:
                    self.binders[name].append(node)

    @cached_property
    def exported(self) -> frozenset[str]:
        """The strings of every statement that mentions `__all__`."""
        return frozenset(
            inner.value
            for node in self.tree.body
            if any(isinstance(n, ast.Name) and n.id == "__all__" for n in ast.walk(node))
            for inner in ast.walk(node)
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
        )

    def loads(self, name: str) -> list[ast.Name]:
        """Return the places where a name is read."""
        return [node for node in self.names.get(name, ()) if isinstance(node.ctx, ast.Load)]

    def is_within(self, node: ast.AST | None, scope: ast.AST) -> bool:
        """Return whether `scope` is a node or holds it."""
        if scope is self.tree:
            return True
        while node is not None and node is not scope:
            node = self.parents.get(node)
        return node is scope


@lru_cache(maxsize=4)
def index_of(tree: ast.Module) -> TreeIndex:
    """Return the index of a tree, which must not change, kept for a while."""
    return TreeIndex(tree)


def with_holders(nodes: Iterable[Node], parents: Mapping[Node, Node]) -> set[Node]:
    """Nodes of a tree, of `ast` or of LibCST, and all that hold one of them."""
    found: set[Node] = set()
    for node in nodes:
        above: Node | None = node
        while above is not None and above not in found:
            found.add(above)
            above = parents.get(above)
    return found
