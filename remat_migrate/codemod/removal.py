"""Removals whose consequences are linked: which of several changes must be made together.

Removing a statement may empty its block; removing the last use of an import leaves the import. What
belongs together, such as the two statements that emptied one block, is one Removal.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..source import Edit, SourceFile
from ..source.changes import Change
from ..source.layout import layout_of
from ..source.pieces import Causes
from ..source.suites import Marks, Verdicts, lost_nodes
from ..source.tree_index import index_of
from ..source.unused import Unused
from .changes import Code, Replace
from .writer import WrittenFile


@dataclass(frozen=True, slots=True)
class Removal:
    """Edits of one file that must be made together.

    Attributes:
        members: indices of the changes that they come from.
        edits: none of them overlapping another, nor an edit of another Removal of the same plan.
    """

    members: frozenset[int]
    edits: tuple[Edit, ...]


@dataclass(frozen=True, eq=False, slots=True)
class _File:
    source: SourceFile
    tree: ast.Module


def plan_removals(
    source: SourceFile,
    tree: ast.Module,
    changes: Sequence[Change],
    *,
    is_used_elsewhere: Callable[[str], bool] = lambda name: False,
    literals: frozenset[str] = frozenset(),
) -> list[Removal]:
    """The edits that make `changes` of a Python file.

    Args:
        source: the file.
        tree: its tree; the nodes of `changes` are nodes of this tree.
        changes: what is removed; an empty change gives no Removal.
        is_used_elsewhere: whether another file may use a module-level name of this one; such an
            import is kept.
        literals: strings; a name that only holds one of them is removed with its last use, like an
            import.

    Raises:
        CodemodError: LibCST cannot parse a statement that is touched.
    """
    if not any(changes):
        return []
    index = index_of(tree)
    marks = Marks.of(changes)
    unused = Unused(layout_of(source), index, is_used_elsewhere, literals)
    while unused.mark(marks):
        pass
    file = _File(source, tree)
    found = []
    for group in _groups(marks, Verdicts(marks, index), tree):
        own = _only(marks, group)
        replaced = [Replace(file, n, Code(text)) for n, (text, _) in own.replaced.items()]
        edits = WrittenFile(file, replaced, own).edits()
        if edits:
            found.append(Removal(group, tuple(edits)))
    return found


def _groups(marks: Marks, verdicts: Verdicts, tree: ast.Module) -> list[frozenset[int]]:
    """The changes that have consequences in common, in the order of their first."""
    own: dict[ast.AST, Causes] = dict(marks.removed)
    for noted in (marks.replaced, marks.kept, marks.suites):
        own |= {node: own.get(node, frozenset()) | why for node, (_, why) in noted.items()}
    causes = list(own.values())
    # What is changed inside of something that is removed goes with that.
    causes += [own[node] | why for node, why in lost_nodes(tree, verdicts) if node in own]
    for node in ast.walk(tree):
        for suite in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(suite, list):
                causes.append(verdicts.all_gone(suite) or frozenset())
                # Neighbours share the blank lines around them.
                gone = [verdicts.gone(statement) for statement in suite]
                causes += [a | b for a, b in itertools.pairwise(gone) if a and b]
        if isinstance(node, ast.stmt):
            causes.append(verdicts.gone(node) or frozenset())
            if reduced := verdicts.reduced(node):
                causes.append(reduced[1])
    groups: list[frozenset[int]] = []
    for cause in filter(None, causes):
        linked = [group for group in groups if group & cause]
        groups = [group for group in groups if not group & cause]
        groups.append(cause.union(*linked))
    return sorted(groups, key=min)


def _only(marks: Marks, group: Causes) -> Marks:
    """The marks of some changes."""
    return Marks(
        {node: why for node, why in marks.removed.items() if why <= group},
        {node: found for node, found in marks.replaced.items() if found[1] <= group},
        {node: found for node, found in marks.kept.items() if found[1] <= group},
        {node: found for node, found in marks.suites.items() if found[1] <= group},
        marks.dead,
    )
