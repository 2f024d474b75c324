"""Finds imports that nothing uses once some nodes of a tree are removed."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache

from ..text import SourceFile
from ..text.comments import comments_of
from .changes import File

_KEEP = re.compile(r"#\s*noqa\s*(?:$|[^:\s]|:[^#]*\bF401\b)", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d]\w*")
# An annotation, an item of `__all__`, or what `mock.patch` replaces.
_ONLY_NAMES = re.compile(r"[\w.\[\], |]*")

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
ImportNode = ast.Import | ast.ImportFrom


class Names:
    """The names that a tree binds and uses, from one walk.

    Attributes:
        uses: what reads, assigns, or declares each name, with the scope that it is in.
        imports: the imports of each name, with the scope. Those in classes, and in a `try` that
            handles their failure, are left out: they are kept.
        words: the names in strings that consist of names.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.uses: defaultdict[str, list[tuple[ast.AST, Scope]]] = defaultdict(list)
        self.imports: defaultdict[str, list[tuple[ast.alias, ImportNode, Scope]]] = defaultdict(
            list
        )
        self.words: set[str] = set()
        self._outer: dict[Scope, Scope] = {}
        stack: list[tuple[ast.AST, Scope, bool]] = [(tree, tree, False)]
        while stack:
            node, scope, is_tried = stack.pop()
            self._note(node, scope, is_tried)
            if isinstance(node, Scope) and node is not scope:
                self._outer[node] = scope
                scope, is_tried = node, False
            is_tried = is_tried or (isinstance(node, ast.Try | ast.TryStar) and bool(node.handlers))
            stack += [(child, scope, is_tried) for child in ast.iter_child_nodes(node)]

    def _note(self, node: ast.AST, scope: Scope, is_tried: bool) -> None:
        match node:
            case ast.Name(id=name):
                self.uses[name].append((node, scope))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.uses[name].append((node, scope))
            case ast.ClassDef(name=name):
                self.uses[name].append((node, scope))
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                for name in names:
                    self.uses[name].append((node, scope))
            case ast.Constant(value=str(text)) if _ONLY_NAMES.fullmatch(text):
                self.words.update(_WORD.findall(text))
            case ast.Import() | ast.ImportFrom():
                if not is_tried and not isinstance(scope, ast.ClassDef):
                    for alias in node.names:
                        bound = alias.asname or alias.name.partition(".")[0]
                        self.imports[bound].append((alias, node, scope))

    def used_in(self, name: str, scope: Scope) -> Iterator[ast.AST]:
        """Yield the uses of a name in a scope and in those within it."""
        for node, own in self.uses[name]:
            around: Scope | None = own
            while around is not None and around is not scope:
                around = self._outer.get(around)
            if around is scope:
                yield node


@lru_cache(maxsize=4)
def names_of(tree: ast.Module) -> Names:
    """Return the names of a tree, which must not change, kept for a while."""
    return Names(tree)


def unused_imports(
    file: File, lost: Collection[ast.AST], is_used: Callable[[str], bool]
) -> Iterator[ast.alias]:
    """Yield the imports that only nodes in `lost` use.

    Args:
        file: the file.
        lost: the nodes that are removed, with all that is in them.
        is_used: whether new code, or another file, uses a name.
    """
    names, source = names_of(file.tree), file.source
    read = {n.id for n in lost if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    for name in sorted(read - names.words):
        imports = names.imports[name]
        for scope in {scope for _, _, scope in imports}:
            own = [(alias, statement) for alias, statement, at in imports if at is scope]
            uses = list(names.used_in(name, scope))
            if uses and all(use in lost for use in uses) and _may_go(name, own, source):
                if not is_used(name):
                    yield from (alias for alias, _ in own)


def _may_go(name: str, imports: Sequence[tuple[ast.alias, ImportNode]], source: SourceFile) -> bool:
    """Return whether nothing says that imports are there for others."""
    comments = comments_of(source)
    is_package = source.path.name == "__init__.py"
    for alias, statement in imports:
        start, end = source.span(statement)
        end = source.line_end(end)
        if any(start <= one.start < end and _KEEP.search(one.text) for one in comments):
            return False
        if alias.asname == alias.name or (is_package and isinstance(statement, ast.ImportFrom)):
            return False
    of_type = re.compile(rf"#\s*type:.*\b{re.escape(name)}\b")
    return not any(of_type.search(comment.text) for comment in comments)
