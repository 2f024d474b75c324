"""Changes `from` imports: names that move to another module, and names that are added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from .expressions import has_comma, without_items
from .lines import PRAGMA, is_line_break


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


def with_name(statement: cst.ImportFrom, name: str) -> cst.ImportFrom:
    """Return a `from` import with one more name, in order if the others are."""
    assert not isinstance(statement.names, cst.ImportStar)
    names = list(statement.names)
    known = [alias.evaluated_name.lower() for alias in names]
    later = next((i for i, other in enumerate(known) if other > name.lower()), len(names))
    index = later if known == sorted(known) else len(names)
    added = cst.ImportAlias(cst.Name(name))
    space: Any = cst.SimpleWhitespace(" ")
    if isinstance(statement.lpar, cst.LeftParen):
        opening = statement.lpar.whitespace_after
        space = opening if is_line_break(opening) else space
    between = next((a.comma for a in names[:-1] if has_comma(a)), cst.Comma(whitespace_after=space))
    if index < len(names):
        names.insert(index, added.with_changes(comma=between))
    else:
        last = names[-1]
        names[-1:] = [last.with_changes(comma=between), added.with_changes(comma=last.comma)]
    return statement.with_changes(names=names)
