"""Groups removals whose consequences are linked.

Removing a statement may empty its block; removing the last use of an import leaves it unused.
Changes that must be made together, such as removing both statements of a block, are one Removal.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...text.tokens import layout_of
from ..changes import File, Reduce
from .reductions import Causes, Reduction
from .suites import Marks, Verdicts, lost_nodes
from .tree_index import index_of
from .unused import Unused


@dataclass(frozen=True, slots=True)
class Removal:
    """Changes of one file that must be made together.

    Attributes:
        members: indices of the changes that they come from.
        changes: the changes with their consequences.
    """

    members: frozenset[int]
    changes: tuple[Reduce, ...]


def plan_removals(
    file: File,
    changes: Sequence[Reduction],
    *,
    is_used_elsewhere: Callable[[str], bool] = lambda name: False,
) -> list[Removal]:
    """Return the reductions of a Python file, grouped by what must be made together.

    Args:
        file: the file; the nodes of `changes` are nodes of its tree.
        changes: what is removed; an empty Reduction gives no Removal.
        is_used_elsewhere: whether another file may use a module-level name of this one; such an
            import is kept.
    """
    if not any(changes):
        return []
    marks = marks_of(file, changes, is_used_elsewhere)
    groups = _groups(marks, Verdicts(marks, index_of(file.tree)), file.tree)
    return [Removal(g, (Reduce(file, file.tree, marks.of_causes(g)),)) for g in groups]


def marks_of(
    file: File,
    changes: Sequence[Reduction],
    is_used_elsewhere: Callable[[str], bool],
) -> Marks:
    """Return what reductions of a file remove, including imports that become unused."""
    marks = Marks.of(changes)
    unused = Unused(layout_of(file.source), index_of(file.tree), is_used_elsewhere)
    while unused.mark(marks):
        pass
    return marks


def _groups(marks: Marks, verdicts: Verdicts, tree: ast.Module) -> list[frozenset[int]]:
    """Return the reductions with common consequences, in the order of the first of each group."""
    own: dict[ast.AST, Causes] = dict(marks.removed)
    for noted in (marks.replaced, marks.kept, marks.suites):
        own |= {node: own.get(node, frozenset()) | why for node, (_, why) in noted.items()}
    causes = list(own.values())
    # Changes inside a removed node belong to its removal.
    causes += [own[node] | why for node, why in lost_nodes(tree, verdicts) if node in own]
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and (moved := verdicts.reduced(node)):
            # What is left of the statement is reindented.
            causes += [own[inner] | moved[1] for inner in ast.walk(node) if inner in own]
        for suite in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(suite, list):
                causes.append(verdicts.all_gone(suite) or frozenset())
                # Neighbours share the blank lines around them.
                gone = [verdicts.gone(statement) for statement in suite]
                causes += [a | b for a, b in itertools.pairwise(gone) if a and b]
        if isinstance(node, ast.stmt):
            causes.append(verdicts.gone(node) or frozenset())
    group_of: dict[int, set[int]] = {}
    for cause in filter(None, causes):
        linked = {id(group): group for member in cause if (group := group_of.get(member))}
        largest = max(linked.values(), key=len, default=set())
        joined = cause.union(*(group for group in linked.values() if group is not largest))
        largest |= joined
        group_of |= dict.fromkeys(joined, largest)
    groups = {id(group): group for group in group_of.values()}
    return sorted(map(frozenset, groups.values()), key=min)
