"""Reorders the arguments of a call, or unpacks one of them."""

from __future__ import annotations

from typing import Any

import libcst as cst

from .changes import ArrangeArguments, Code
from .expressions import breaks_line, has_comma, parenthesized, with_last
from .lines import all_comments, is_line_break
from .new_nodes import NewStatementNodes


def arranged(call: cst.Call, change: ArrangeArguments, new_nodes: NewStatementNodes) -> cst.Call:
    """Return a call with its arguments reordered; whitespace and commas stay where they are."""
    slots = call.args
    new: list[cst.Arg] = []
    for item in change.arguments:
        if isinstance(item, Code):
            new.append(cst.Arg(new_nodes.expression(item)))
            continue
        arg = new_nodes.item(item)
        if item in change.by_position:
            arg = arg.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)
        new.append(arg)
    old, added = new[: len(slots)], new[len(slots) :]
    placed = [
        arg.with_changes(comma=slot.comma, whitespace_after_arg=slot.whitespace_after_arg)
        for arg, slot in zip(old, slots, strict=True)
    ]
    call = call.with_changes(args=placed)
    return with_last(call, added) if added else call


def spread(call: cst.Call, index: int) -> cst.Call:
    """Return a call that unpacks the argument at `index`: `*argument`.

    A list, tuple, or set is written without its brackets instead, unless that loses a comment.
    """
    arg = call.args[index]
    if isinstance(arg.value, cst.List | cst.Tuple | cst.Set):
        plain = _without_brackets(call, index, arg.value)
        if plain is not None and all_comments(plain) == all_comments(call):
            return plain
    starred = arg.with_changes(
        star="*", keyword=None, equal=cst.MaybeSentinel.DEFAULT, value=parenthesized(arg.value)
    )
    return call.with_changes(args=[*call.args[:index], starred, *call.args[index + 1 :]])


def _without_brackets(call: cst.Call, index: int, value: Any) -> cst.Call | None:
    arg, is_alone = call.args[index], len(call.args) == 1
    args = [_argument(item) for item in value.elements]
    if not args:
        return call.with_changes(args=[]) if is_alone else None
    opening, closing = _inside(value)
    if is_alone and is_line_break(opening) and not is_line_break(call.whitespace_before_args):
        # The layout inside the brackets becomes that of the call.
        last = args[-1]
        if has_comma(last):
            comma: Any = last.comma
            args[-1] = last.with_changes(comma=comma.with_changes(whitespace_after=closing))
        else:
            args[-1] = last.with_changes(whitespace_after_arg=closing)
        return call.with_changes(whitespace_before_args=opening, args=args)
    if is_line_break(opening):
        if not is_alone:
            return None
        args = [_on_a_line(arg, call.whitespace_before_args) for arg in args]
    args[-1] = args[-1].with_changes(comma=arg.comma, whitespace_after_arg=arg.whitespace_after_arg)
    return call.with_changes(args=[*call.args[:index], *args, *call.args[index + 1 :]])


def _argument(item: cst.BaseElement) -> cst.Arg:
    star = "*" if isinstance(item, cst.StarredElement) else ""
    return cst.Arg(item.value, star=star, comma=item.comma)  # type: ignore[arg-type]


def _inside(value: Any) -> tuple[Any, Any]:
    """Return the whitespace after the opening bracket and before the closing one."""
    match value:
        case cst.List():
            return value.lbracket.whitespace_after, value.rbracket.whitespace_before
        case cst.Set():
            return value.lbrace.whitespace_after, value.rbrace.whitespace_before
    return value.lpar[-1].whitespace_after, value.rpar[0].whitespace_before


def _on_a_line(arg: Any, space: Any) -> Any:
    """Return an argument that indents the next line like `space`, if its comma ends the line."""
    if not breaks_line(arg):
        return arg
    after = arg.comma.whitespace_after.with_changes(indent=space.indent, last_line=space.last_line)
    return arg.with_changes(comma=arg.comma.with_changes(whitespace_after=after))
