"""Finds imports, aliases, and constants that become unused when nodes are removed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ...text.tokens import Layout
from .reductions import Causes
from .suites import Marks, TryNode, Verdicts, lost_nodes
from .tree_index import TreeIndex

_KEEP = re.compile(r"#\s*noqa\s*(?:$|[^:\s]|:[^#]*\bF401\b)", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d]\w*")

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class _Spare:
    """A binding that may go: an imported name, another name for something, or a constant."""

    name: str
    node: ast.alias | ast.stmt
    statement: ast.stmt
    scope: Scope


class Unused:
    """Finds bindings whose every use has gone.

    Args:
        layout: the file.
        index: its tree.
        is_used_elsewhere: whether another file may use a module-level name of this one.
    """

    def __init__(
        self,
        layout: Layout,
        index: TreeIndex,
        is_used_elsewhere: Callable[[str], bool],
    ) -> None:
        self.layout = layout
        self.index = index
        self.is_used_elsewhere = is_used_elsewhere

    def mark(self, marks: Marks) -> bool:
        """Mark what goes now; False when there is nothing more."""
        verdicts = Verdicts(marks, self.index)
        lost = dict(lost_nodes(self.index.tree, verdicts))
        names: dict[str, Causes] = {}
        for node, causes in lost.items():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                names[node.id] = names.get(node.id, frozenset()) | causes
        changed = False
        for name, causes in sorted(names.items()):
            spares = [s for s in self._spares(name, marks) if s.node not in lost]
            for scope in dict.fromkeys(spare.scope for spare in spares):
                here = [spare for spare in spares if spare.scope is scope]
                if self._is_read(name, scope, lost, here) or self._is_written(name, scope, marks):
                    continue
                if not self._may_go(name, here):
                    continue
                if self._go(here, causes, marks):
                    changed = True
        return changed

    # -- candidates

    def _spares(self, name: str, marks: Marks) -> Iterator[_Spare]:
        for statement in self.index.imports:
            for alias in statement.names:
                bound = alias.asname or alias.name.partition(".")[0]
                if bound == name and (scope := self._scope(statement)):
                    yield _Spare(name, alias, statement, scope)
        for assignment in self.index.assignments.get(name, ()):
            if self._is_spare_value(assignment.value, marks):
                if scope := self._scope(assignment):
                    yield _Spare(name, assignment, assignment, scope)

    def _is_spare_value(self, value: ast.expr, marks: Marks) -> bool:
        if value in marks.replaced:
            return True
        while isinstance(value, ast.Attribute):
            value = value.value
        return isinstance(value, ast.Name)

    def _scope(self, node: ast.AST) -> Scope | None:
        """Return the function or module in which a statement binds; None for class bodies."""
        above = self.index.parents.get(node)
        while above is not None and not isinstance(above, Scope):
            above = self.index.parents.get(above)
        return None if above is None or isinstance(above, ast.ClassDef) else above

    # -- uses

    def _is_read(
        self, name: str, scope: Scope, lost: Mapping[ast.AST, Causes], spares: list[_Spare]
    ) -> bool:
        """Return whether the rest of `scope` uses or rebinds the name, or nothing ever used it."""
        own = {spare.node for spare in spares}
        ever = False
        for use in self.index.names.get(name, ()):
            if not self.index.is_within(use, scope):
                continue
            if use in lost:
                ever = ever or isinstance(use.ctx, ast.Load)
            elif self.index.parents.get(use) not in own:
                return True
        if any(self.index.is_within(n, scope) for n in self.index.binders.get(name, ())):
            return True
        for node, text in self.index.strings:
            if name in text and node not in lost and self.index.is_within(node, scope):
                if self._names(name, node, text):
                    return True
        return not ever or any(
            re.search(rf"#\s*type:.*\b{re.escape(name)}\b", comment.text)
            for comment in self.layout.comments
        )

    def _is_written(self, name: str, scope: Scope, marks: Marks) -> bool:
        """Return whether a text that takes the place of an expression uses the name."""
        return any(
            name in _WORD.findall(text) and self.index.is_within(node, scope)
            for node, (text, _) in marks.replaced.items()
        )

    def _names(self, name: str, node: ast.Constant, text: str) -> bool:
        """Return whether a string is an annotation that uses the name, or a path to it."""
        if f"{self.layout.source.path.stem}.{name}" in text:
            return True  # mock.patch("package.module.os.environ")
        child: ast.AST = node
        above = self.index.parents.get(node)
        while isinstance(above, ast.expr | ast.Expr):
            child, above = above, self.index.parents.get(above)
        annotations = (
            getattr(above, "annotation", None),
            getattr(above, "returns", None),
        )
        return child in annotations and name in _WORD.findall(text)

    def _may_go(self, name: str, spares: list[_Spare]) -> bool:
        path = self.layout.source.path
        for spare in spares:
            start, end = self.layout.source.span(spare.statement)
            comments = self.layout.comments_in(start, self.layout.line_end(end))
            if any(_KEEP.search(comment.text) for comment in comments):
                return False
            if isinstance(spare.node, ast.alias) and spare.node.asname == spare.node.name:
                return False  # `import x as x` says that x is there for others
            if not isinstance(spare.scope, ast.Module):
                continue
            if name in self.index.exported or self.is_used_elsewhere(name):
                return False
            if path.name == "__init__.py" and isinstance(spare.statement, ast.ImportFrom):
                return False
        return bool(spares)

    def _go(
        self,
        spares: list[_Spare],
        causes: Causes,
        marks: Marks,
    ) -> bool:
        """Mark the bindings as gone, unless a `try` watches over one of them."""
        for spare in spares:
            marks.remove(spare.node, causes)
        verdicts = Verdicts(marks, self.index)
        for spare in spares:
            for watch in self._watches(spare.statement):
                if not all(_is_idle(s, verdicts) for h in watch.handlers for s in h.body) or any(
                    verdicts.gone(s) is None for s in watch.orelse
                ):
                    for again in spares:
                        del marks.removed[again.node]
                    return False
        return True

    def _watches(self, statement: ast.stmt) -> Iterator[TryNode]:
        """Yield the `try` statements whose handlers catch what `statement` raises."""
        child: ast.AST = statement
        above = self.index.parents.get(statement)
        while above is not None and not isinstance(above, Scope):
            if isinstance(above, TryNode) and child in above.body and above.handlers:
                yield above
            child, above = above, self.index.parents.get(above)


def _is_idle(statement: ast.stmt, verdicts: Verdicts) -> bool:
    return isinstance(statement, ast.Pass | ast.Raise) or verdicts.gone(statement) is not None
