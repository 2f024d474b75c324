"""Moves names of a `from` import to another module."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import libcst as cst

from .expressions import has_comma, with_commas, without_items
from .lines import PRAGMA, is_line_break, own_lines
from .statements import Statement


def with_names_moved(line: Any, moved: Sequence[bool], module: str) -> list[Statement]:
    """Return a `from` import without some names, after the statements that import those.

    The comments of a name on a line of its own move with it.
    """
    (node,) = line.body
    if all(moved):
        origin = cst.parse_expression(module)
        return [line.with_changes(body=[node.with_changes(module=origin, relative=())])]
    spaces = _spaces(node)
    own = [i for i, moves in enumerate(moved) if moves]
    names = [node.names[i].with_changes(comma=cst.MaybeSentinel.DEFAULT) for i in own]
    if not all(map(is_line_break, (s for i in own for s in spaces[i : i + 2]))):
        # They share lines with other names, which keep the comments.
        kept = without_items(node, "names", moved)
        return [_import(module, names, comment=_pragma(line)), line.with_changes(body=[kept])]
    kept = _without_lines(node, moved, spaces)
    above = [[x.comment.value for x in spaces[i].empty_lines if x.comment] for i in own]
    after = [spaces[i + 1].first_line.comment for i in own]
    if any(above) or any(after):
        new = [
            _import(module, [name], lines, comment)
            for name, lines, comment in zip(names, above, after, strict=True)
        ]
    else:
        new = [_import(module, names, comment=_pragma(line))]
    return [*new, line.with_changes(body=[kept])]


def _spaces(node: Any) -> list[Any]:
    """Return the whitespace before, between, and after the names."""
    spaces = [name.comma.whitespace_after for name in node.names if has_comma(name)]
    if not has_comma(node.names[-1]):
        spaces.append(node.rpar.whitespace_before if node.rpar else None)
    return [node.lpar.whitespace_after if node.lpar else None, *spaces]


def _without_lines(node: Any, moved: Sequence[bool], spaces: Sequence[Any]) -> Any:
    """Return a `from` import without names that are on their own lines, and without those lines."""
    count = len(moved)
    kept = [-1, *(i for i, moves in enumerate(moved) if not moves), count]
    joined = [
        spaces[low + 1]
        if low + 1 == high
        else spaces[high].with_changes(first_line=spaces[low + 1].first_line)
        for low, high in itertools.pairwise(kept)
    ]
    opening = node.lpar.with_changes(whitespace_after=joined[0])
    names = with_commas([node.names[i] for i in kept[1:-1]], joined[1:])
    if has_comma(node.names[-1]):
        return node.with_changes(names=names, lpar=opening)
    names[-1] = names[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    closing = node.rpar.with_changes(whitespace_before=joined[-1])
    return node.with_changes(names=names, lpar=opening, rpar=closing)


def _import(
    module: str,
    names: Sequence[cst.ImportAlias],
    above: Sequence[str] = (),
    comment: cst.Comment | None = None,
) -> cst.SimpleStatementLine:
    node = cst.ImportFrom(cst.parse_expression(module), names)  # type: ignore[arg-type]
    trailing = cst.TrailingWhitespace(cst.SimpleWhitespace("  " if comment else ""), comment)
    return cst.SimpleStatementLine([node], own_lines(above), trailing)


def _pragma(line: cst.SimpleStatementLine) -> cst.Comment | None:
    """Return the directive for tools after a statement, which its copies need as well."""
    comment = line.trailing_whitespace.comment
    return comment if comment and PRAGMA.match(comment.value) else None
