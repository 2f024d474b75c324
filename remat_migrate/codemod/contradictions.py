"""Changes that cannot be made together."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..errors import CodemodError
from .changes import AddImport, Change, Replace, ReplaceStatement, Require, Rewrite
from .tree.suites import Marks


def check_none_lost(changes: Sequence[Change], marks: Marks) -> None:
    """Compare what Changes discard with what others change.

    Raises:
        CodemodError: a Change discards code that another one changes.
    """
    changed = {c.node for c in changes if not isinstance(c, AddImport | Require)}
    changed |= marks.removed.keys()
    for change in changes:
        match change:
            case Replace(code=code):
                kept = {part for _, part in code.parts}
            case ReplaceStatement(statements=codes):
                kept = {part for code in codes for _, part in code.parts}
            case Rewrite(discards=True):
                kept = set()
            case _:
                continue
        waiting = list(ast.iter_child_nodes(change.node))
        while waiting:
            node = waiting.pop()
            if node in kept:
                continue
            if node in changed:
                raise CodemodError("another fix replaces code that this one changes")
            waiting += ast.iter_child_nodes(node)
