"""Reorders the arguments of a call, or unpacks one of them."""

from __future__ import annotations

from typing import Any, Literal

import libcst as cst

from .changes import ArrangeArguments, Code
from .expressions import parenthesized, spans_lines, with_last
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

    A list, tuple, or set on one line is written without its brackets instead.
    """
    arg, value = call.args[index], call.args[index].value
    if isinstance(value, cst.List | cst.Tuple | cst.Set) and not spans_lines(value):
        items: list[Any] = [cst.Arg(item.value, star=_star(item)) for item in value.elements]
        if items:
            end = {"comma": arg.comma, "whitespace_after_arg": arg.whitespace_after_arg}
            items[-1] = items[-1].with_changes(**end)
        if items or len(call.args) == 1:
            return call.with_changes(args=[*call.args[:index], *items, *call.args[index + 1 :]])
    starred = arg.with_changes(
        star="*", keyword=None, equal=cst.MaybeSentinel.DEFAULT, value=parenthesized(value)
    )
    return call.with_changes(args=[*call.args[:index], starred, *call.args[index + 1 :]])


def _star(item: cst.BaseElement) -> Literal["", "*"]:
    return "*" if isinstance(item, cst.StarredElement) else ""
