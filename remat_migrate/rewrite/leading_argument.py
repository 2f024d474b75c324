"""Putting an argument in front of those that a call has."""

from __future__ import annotations

import ast

from ..model import Module
from ..source import Edit
from ..source.layout import layout_of


def leading_argument(module: Module, call: ast.Call, text: str) -> Edit:
    """The edit that gives a call a first argument, on a line of its own if the others are."""
    layout = layout_of(module.source)
    opening = layout.after(module.span(call.func).end)
    while opening is not None and opening.text != "(":
        opening = layout.after(opening.end)  # parentheses around what is called
    assert opening is not None
    following = layout.after(opening.end)
    assert following is not None
    source = module.source
    if following.text == ")":
        return Edit(source.path, opening.end, opening.end, text)
    first = layout.line_start(following.start)
    if first > opening.end:
        # Above comments on the first argument.
        at = layout.next_line(opening.end)
        indent = source.text[first : following.start]
        return Edit(source.path, at, at, f"{indent}{text},{source.newline}")
    return Edit(source.path, opening.end, opening.end, f"{text}, ")
