"""Determines which statements and blocks are removed along with some nodes of a tree.

A compound statement is removed with all statements of its block if that loses nothing else. A
`with` without items, or a `try` with an empty body, is reduced to the rest of its contents.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .reductions import Causes, Reduction, is_pure
from .tree_index import TreeIndex, with_holders

Reduced = tuple[list[ast.stmt], Causes]
TryNode = ast.Try | ast.TryStar


@dataclass(eq=False)
class Marks:
    """What a list of changes takes out of a tree; each with the indices of the changes."""

    removed: dict[ast.AST, Causes] = field(default_factory=dict)
    replaced: dict[ast.expr, tuple[str, Causes]] = field(default_factory=dict)
    kept: dict[ast.expr, tuple[ast.expr, Causes]] = field(default_factory=dict)
    suites: dict[ast.stmt, Reduced] = field(default_factory=dict)

    @classmethod
    def of(cls, changes: Sequence[Reduction]) -> Marks:
        """Return the marks of all changes."""
        marks = cls()
        for index, change in enumerate(changes):
            cause = frozenset((index,))
            for node in change.remove:
                marks.remove(node, cause)
            for expression, text in change.replace:
                before = marks.replaced.get(expression, (text, cause))
                marks.replaced[expression] = (text, before[1] | cause)
            for whole, part in change.keep:
                known = marks.kept.get(whole, (part, cause))
                marks.kept[whole] = (part, known[1] | cause)
            for statement, suite in change.suites:
                noted = marks.suites.get(statement, (suite, cause))
                marks.suites[statement] = (suite, noted[1] | cause)
        return marks

    def of_causes(self, causes: Causes) -> Marks:
        """Return the marks that come from some changes alone."""
        return Marks(
            {node: why for node, why in self.removed.items() if why <= causes},
            {node: found for node, found in self.replaced.items() if found[1] <= causes},
            {node: found for node, found in self.kept.items() if found[1] <= causes},
            {node: found for node, found in self.suites.items() if found[1] <= causes},
        )

    def __or__(self, other: Marks) -> Marks:
        return Marks(
            self.removed | other.removed,
            self.replaced | other.replaced,
            self.kept | other.kept,
            self.suites | other.suites,
        )

    def remove(self, node: ast.AST, causes: Causes) -> None:
        """Mark a node as gone."""
        self.removed[node] = self.removed.get(node, frozenset()) | causes


class Verdicts:
    """What becomes of each statement under some marks.

    `index` is of the whole tree.
    """

    def __init__(self, marks: Marks, index: TreeIndex) -> None:
        self.marks = marks
        self._index = index
        self._gone: dict[ast.stmt, Causes | None] = {}
        self._reduced: dict[ast.stmt, Reduced | None] = {}

    def holders(self) -> set[ast.AST]:
        """Return the marked nodes and those that hold them: nothing is lost elsewhere."""
        marks = self.marks
        nodes = (*marks.removed, *marks.replaced, *marks.kept, *marks.suites)
        return with_holders(nodes, self._index.parents)

    def top_level(self, nodes: Iterable[ast.AST]) -> list[ast.stmt]:
        """Return the statements of the module's body among some nodes, in order."""
        tree, parents = self._index.tree, self._index.parents
        found = (n for n in nodes if isinstance(n, ast.stmt) and parents.get(n) is tree)
        return sorted(found, key=lambda n: (n.lineno, n.col_offset))

    def gone(self, statement: ast.stmt) -> Causes | None:
        """Return the changes that make a statement go; None if it stays."""
        if statement not in self._gone:
            self._gone[statement] = self._judge(statement)
        return self._gone[statement]

    def all_gone(self, suite: Sequence[ast.stmt]) -> Causes | None:
        """Return the changes that leave nothing of a suite but `pass`; None if something stays."""
        found: Causes = frozenset()
        for statement in suite:
            if isinstance(statement, ast.Pass):
                continue
            causes = self.gone(statement)
            if causes is None:
                return None
            found |= causes
        return found or None

    def reduced(self, statement: ast.stmt) -> Reduced | None:
        """Return the suite that a statement comes down to, with the changes; None if it stays."""
        if statement not in self._reduced:
            self._reduced[statement] = self._reduce(statement)
        return self._reduced[statement]

    def _judge(self, statement: ast.stmt) -> Causes | None:
        causes = self.marks.removed.get(statement)
        if causes is not None:
            return causes
        if isinstance(statement, ast.Import | ast.ImportFrom):
            return _together(self.marks, statement.names)
        reduced = self.reduced(statement)
        if reduced is None:
            return None
        suite, causes = reduced
        inside = self.all_gone(suite)
        if suite and inside is None:
            return None
        return causes | (inside or frozenset())

    def _reduce(self, statement: ast.stmt) -> Reduced | None:
        known = self.marks.suites.get(statement)
        if known is not None:
            suite, causes = known
            return [] if all(isinstance(s, ast.Pass) for s in suite) else suite, causes
        match statement:
            case ast.If():
                return self._reduce_if(statement)
            case ast.With() | ast.AsyncWith():
                return self._reduce_with(statement)
            case ast.Try() | ast.TryStar():
                return self._reduce_try(statement)
            case ast.For(target=target, iter=iterable):
                body = self.all_gone(statement.body)
                if body is None or not is_pure(iterable) or self._read_outside(target, statement):
                    return None
                return statement.orelse, body
        return None

    def _reduce_with(self, statement: ast.With | ast.AsyncWith) -> Reduced | None:
        items = _together(self.marks, statement.items)
        if items is not None:
            return statement.body, items
        body = self.all_gone(statement.body)
        if body is not None and all(_suppresses(item) for item in statement.items):
            return [], body
        return None

    def _reduce_if(self, statement: ast.If) -> Reduced | None:
        body = self.all_gone(statement.body)
        orelse = self.all_gone(statement.orelse)
        if body is None or not is_pure(statement.test):
            return None
        if statement.orelse and orelse is None:
            return None
        return [], body | (orelse or frozenset())

    def _reduce_try(self, statement: TryNode) -> Reduced | None:
        last = self.all_gone(statement.finalbody)
        body = self.all_gone(statement.body)
        if body is not None:
            # Nothing is tried, so nothing is caught.
            if not statement.finalbody or last is not None:
                return statement.orelse, body | (last or frozenset())
            orelse = self.all_gone(statement.orelse)
            if not statement.orelse or orelse is not None:
                return statement.finalbody, body | (orelse or frozenset())
        elif last is not None and not statement.handlers:
            return statement.body, last
        return None

    def _read_outside(self, target: ast.expr, loop: ast.For) -> bool:
        """Return whether other code may read a name of a loop, except in another loop over it."""
        parts = list(ast.walk(target))
        if not all(isinstance(part, ast.Name | ast.Tuple | ast.expr_context) for part in parts):
            return True
        names = {part.id for part in parts if isinstance(part, ast.Name)}
        inside = set(ast.walk(loop))
        return any(
            node not in inside and not self._is_rebound(node)
            for name in names
            for node in self._index.loads(name)
        )

    def _is_rebound(self, node: ast.Name) -> bool:
        """Return whether a name is read inside a loop or comprehension that gives it its value."""
        above = self._index.parents.get(node)
        while above is not None and not isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
            targets = [g.target for g in getattr(above, "generators", ())]
            if isinstance(above, ast.For) and node not in ast.walk(above.iter):
                targets.append(above.target)
            if any(
                isinstance(n, ast.Name) and n.id == node.id for t in targets for n in ast.walk(t)
            ):
                return True
            above = self._index.parents.get(above)
        return False


def _suppresses(item: ast.withitem) -> bool:
    """Return whether an item is `contextlib.suppress(...)`, which has no effect by itself."""
    match item.context_expr:
        case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress")):
            return True
    return False


def _together(marks: Marks, nodes: Sequence[ast.AST]) -> Causes | None:
    """Return the changes that take all of `nodes` out; None if one stays."""
    found: Causes = frozenset()
    for node in nodes:
        causes = marks.removed.get(node)
        if causes is None:
            return None
        found |= causes
    return found


def lost_nodes(tree: ast.AST, verdicts: Verdicts) -> Iterator[tuple[ast.AST, Causes]]:
    """Yield every node that is no longer in the tree, with the changes that take it out."""
    marks = verdicts.marks
    holders = verdicts.holders()
    stack: list[tuple[ast.AST, Causes | None]] = [(tree, None)]
    if isinstance(tree, ast.Module):
        stack = [(statement, None) for statement in verdicts.top_level(holders)]
    while stack:
        node, causes = stack.pop()
        if causes is None:
            if node not in holders:
                continue
            causes = marks.removed.get(node)
        if causes is None and isinstance(node, ast.stmt):
            causes = verdicts.gone(node)
        if causes is None and node in marks.replaced:
            causes = marks.replaced[node][1]
        if causes is not None:
            yield node, causes
            stack += [(child, causes) for child in ast.iter_child_nodes(node)]
            continue
        stay: Sequence[ast.AST] | None = None
        why: Causes | None = None
        if isinstance(node, ast.stmt) and (reduced := verdicts.reduced(node)):
            stay, why = reduced
        elif isinstance(node, ast.expr) and node in marks.kept:
            part, why = marks.kept[node]
            stay = [part]
        elif isinstance(node, ast.Dict):
            # A key goes with its value.
            pairs = zip(node.keys, node.values, strict=True)
            for key, value in pairs:
                entry = marks.removed.get(key if key is not None else value)
                stack.append((value, entry))
                if key is not None:
                    stack.append((key, entry))
            continue
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ExceptHandler) and stay == child.body:
                # The handler's `except ...:` goes, what it does stays.
                stack += [(s, None) for s in child.body]
                stack += [(child.type, why)] if child.type is not None else []
                continue
            stack.append((child, None if stay is None or child in stay else why))
