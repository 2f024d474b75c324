"""Check that edits leave the rest of a file unchanged, independently of the tool's own comparison.

The tool walks the trees before and after together and follows moved nodes
(`remat_migrate.engine.integrity`). Here, each node of the old tree outside the edits has a position
in the new text, computed from the edits' lengths, where an equal node must be.
"""

from __future__ import annotations

import ast
import bisect
import warnings
from collections.abc import Iterator, Sequence

from remat_migrate.text import Edit, SourceFile

from .subject import FixedFiles, Wrong


def check_edits(fixed: FixedFiles) -> None:
    """Check that each fix makes exactly its edits, and that the rest parses as before.

    Raises:
        Wrong: the fix changes more.
    """
    for applied in fixed.outcome.applied:
        fix = applied.finding.fix
        assert fix is not None
        for path, (before, after) in applied.texts.items():
            edits = sorted({edit for edit in fix.edits if edit.path == path})
            if spliced(before.text, edits) != after.text:
                raise Wrong(f"{applied.finding.code} changed more than its edits")
            if path.suffix == ".py":
                for problem in lost(before, after, edits):
                    raise Wrong(f"{applied.finding.code} of {path.name}: {problem}")


def spliced(text: str, edits: Sequence[Edit]) -> str:
    """Apply edits to a text, from the last to the first."""
    for edit in reversed(edits):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def lost(before: SourceFile, after: SourceFile, edits: Sequence[Edit]) -> Iterator[str]:
    """Yield the nodes outside the edits that are not at their new position."""
    old, new = _tree(before.text), _tree(after.text)
    there: dict[tuple[type[ast.AST], int], list[ast.AST]] = {}
    for node in ast.walk(new):
        if isinstance(node, ast.expr | ast.stmt):
            start, _ = after.span(node)
            there.setdefault((type(node), start), []).append(node)
    starts = [edit.start for edit in edits]
    for node in _untouched(before, old, edits, starts):
        start, end = before.span(node)
        text = before.text[start:end]
        dumped = ast.dump(node)
        candidates = (
            other
            for place in _moved(start, edits)
            for other in there.get((type(node), place), ())
            if ast.dump(other) == dumped
        )
        if next(candidates, None) is None:
            line, column = before.position(start)
            yield f"what stood at {line}:{column} is parsed differently: {text[:60]!r}"


def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _untouched(
    source: SourceFile, tree: ast.AST, edits: Sequence[Edit], starts: Sequence[int]
) -> Iterator[ast.expr | ast.stmt]:
    """Yield the outermost nodes with a position that no edit overlaps or inserts into."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.JoinedStr):  # its parts have no places of their own in Python 3.11
            inner: list[ast.AST] = []
        else:
            inner = list(ast.iter_child_nodes(node))
        if not isinstance(node, ast.expr | ast.stmt):
            stack += inner
            continue
        start, end = source.span(node)
        if decorators := getattr(node, "decorator_list", None):
            start = source.span(decorators[0]).start
        first = bisect.bisect_left(starts, start)
        around = edits[max(0, first - 1) : bisect.bisect_right(starts, end)]
        # An import may be extended by a name.
        last = end + isinstance(node, ast.ImportFrom)
        if any(edit.start < last and edit.end > start for edit in around):
            # An edit of the whole node or a part: its other parts may be outside the edits.
            stack += inner
        else:
            yield node


def _moved(offset: int, edits: Sequence[Edit]) -> tuple[int, int]:
    """Return the position of a character after the edits: after or before an insertion there."""
    behind = sum(len(e.text) - (e.end - e.start) for e in edits if e.end <= offset)
    inserted = sum(len(e.text) for e in edits if e.start == e.end == offset)
    return offset + behind, offset + behind - inserted
