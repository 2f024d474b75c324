"""Changes `from` imports: names that move to another module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from .expressions import without_items
from .lines import PRAGMA


def with_names_moved(
    line: Any, moved: Sequence[bool], module: str
) -> list[cst.SimpleStatementLine]:
    """Return a `from` import without some names, after the statement that imports those.

    The names that stay keep the comments, but those for tools apply to both.
    """
    (node,) = line.body
    origin: Any = cst.parse_expression(module)
    if all(moved):
        return [line.with_changes(body=[node.with_changes(module=origin, relative=())])]
    names = [
        name.with_changes(comma=cst.MaybeSentinel.DEFAULT)
        for name, moves in zip(node.names, moved, strict=True)
        if moves
    ]
    end, comment = cst.TrailingWhitespace(), line.trailing_whitespace.comment
    if comment and PRAGMA.match(comment.value):
        end = cst.TrailingWhitespace(cst.SimpleWhitespace("  "), comment)
    new = cst.SimpleStatementLine([cst.ImportFrom(origin, names)], trailing_whitespace=end)
    return [new, line.with_changes(body=[without_items(node, "names", moved)])]
