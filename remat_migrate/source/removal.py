"""From changes of a tree to edits of its text, with all that follows from them.

Taking a statement out may empty its block; taking the last use of an import away leaves the import;
a test that is known leaves one branch, moved to the left. What belongs together (the two statements
that emptied one block) is one Removal, to be applied whole. Comments of what stays are kept, and so
are those of a removed statement; comments in a branch that is never reached go with it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from .changes import Change
from .layout import layout_of
from .pieces import Removal, join_pieces
from .statements import Writer
from .suites import Marks, Verdicts
from .text import SourceFile
from .tree_index import index_of
from .unused import Unused


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
        changes: what shall go; an empty change gives no Removal.
        is_used_elsewhere: whether another file may use a module-level name of this one; such an
            import is kept.
        literals: strings; a name that only holds one of them goes with its last use, as an import
            does.
    """
    if not any(changes):
        return []
    layout = layout_of(source)
    index = index_of(tree)
    marks = Marks.of(changes)
    unused = Unused(layout, index, is_used_elsewhere, literals)
    while unused.mark(marks):
        pass
    writer = Writer(layout, tree, index.parents, marks, Verdicts(marks, index))
    return join_pieces(source.path, source.text, writer.write())
