"""Moves statements of a block, or a loop, into a nested function that is called in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from ..errors import CodemodError
from .changes import Group


def grouped(group: Group, node: Any) -> list[Any]:
    """Return the block or the loop with its statements in a nested function.

    Raises:
        CodemodError: several statements are on one line.
    """
    if group.loop:
        loop = _parsed(group.loop)
        inner = node.with_changes(iter=cst.parse_expression(group.items), leading_lines=[])
        return [loop.with_changes(body=cst.IndentedBlock(_nested(group, [inner])))]
    suite: Sequence[Any] = getattr(group.node, "body", ())
    if len(node.body.body) != len(suite):
        raise CodemodError("several statements are on one line")
    first, stop = suite.index(group.body[0]), suite.index(group.body[-1]) + 1
    own = node.body.body
    body = [*own[:first], *_nested(group, own[first:stop]), *own[stop:]]
    return [node.with_changes(body=node.body.with_changes(body=body))]


def _nested(group: Group, body: Sequence[Any]) -> list[Any]:
    """Return the nested function with a body, and its call."""
    lines = [body[0].with_changes(leading_lines=[]), *body[1:]]
    if group.result:
        lines.append(_parsed(group.result))
    function = _parsed(group.function)
    blank = [cst.EmptyLine(indent=False)]
    return [
        function.with_changes(leading_lines=body[0].leading_lines, body=cst.IndentedBlock(lines)),
        _parsed(group.call).with_changes(leading_lines=blank),
    ]


def _parsed(code: str) -> Any:
    return cst.parse_statement(code)
