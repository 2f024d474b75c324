"""Comments and blank lines of syntax trees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import libcst as cst

Lines = list[cst.EmptyLine]
# Comments that are directives for tools about the code on their line.
PRAGMA = re.compile(
    r"#\s*(noqa|type:|pylint:|pragma:|fmt:|isort:|nosec|pyright:|mypy:|yapf:|ruff:|flake8)"
)


def comments_in(node: cst.CSTNode) -> list[str]:
    """Return the comments in a node, except those that are directives for tools."""
    return [text for text in all_comments(node) if not PRAGMA.match(text)]


def all_comments(node: cst.CSTNode) -> list[str]:
    """Return the comments in a node."""
    found = _Comments()
    node.visit(found)
    return found.texts


class _Comments(cst.CSTVisitor):
    """Collects the texts of comments."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def visit_Comment(self, node: cst.Comment) -> None:
        self.texts.append(node.value)


def own_lines(texts: Iterable[str]) -> Lines:
    """Comments on lines of their own."""
    return [cst.EmptyLine(comment=cst.Comment(text)) for text in texts]


def trimmed(lines: Sequence[cst.EmptyLine]) -> Lines:
    """Lines without the blank ones at the end."""
    return trimmed_start(lines[::-1])[::-1]


def trimmed_start(lines: Sequence[cst.EmptyLine]) -> Lines:
    """Lines without the blank ones at the start."""
    first = next((i for i, line in enumerate(lines) if line.comment), len(lines))
    return list(lines[first:])


def seam(
    above: Sequence[cst.EmptyLine], below: Sequence[cst.EmptyLine], *, first: bool = False
) -> Lines:
    """Return the lines around removed code, separated by the longer of their runs of blanks."""
    kept, rest = trimmed(above), trimmed_start(below)
    ends, starts = above[len(kept) :], below[: len(below) - len(rest)]
    joined = [*kept, *(ends if len(ends) >= len(starts) else starts), *rest]
    return trimmed_start(joined) if first else joined


def without_comment(node: Any, pattern: str) -> Any:
    """Return a node without the comments that match a regular expression."""
    return node.visit(_WithoutComment(pattern))


class _WithoutComment(cst.CSTTransformer):
    """Removes the comments at the ends of lines that match a regular expression."""

    def __init__(self, pattern: str) -> None:
        super().__init__()
        self.pattern = pattern

    def leave_TrailingWhitespace(
        self, original: cst.TrailingWhitespace, updated: cst.TrailingWhitespace
    ) -> cst.TrailingWhitespace:
        if updated.comment is None or not re.fullmatch(self.pattern, updated.comment.value):
            return updated
        return updated.with_changes(whitespace=cst.SimpleWhitespace(""), comment=None)


def with_comments(space: Any, last: Any, texts: Sequence[str]) -> cst.ParenthesizedWhitespace:
    """Return a line break followed by comments, each on its own line; it ends like `last`."""
    lines = [
        line.with_changes(indent=space.indent, whitespace=space.last_line)
        for line in own_lines(texts)
    ]
    fields: dict[str, Any] = {"empty_lines": [*space.empty_lines, *lines]}
    if is_line_break(last):
        fields |= {"indent": last.indent, "last_line": last.last_line}
    noted: cst.ParenthesizedWhitespace = space.with_changes(**fields)
    return noted


def is_line_break(space: Any) -> bool:
    """Return whether whitespace within brackets continues on another line."""
    return isinstance(space, cst.ParenthesizedWhitespace)
