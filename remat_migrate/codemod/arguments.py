"""Puts the arguments of a call in another order, or passes the items of one one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst
import libcst.matchers as m

from .changes import ArrangeArguments, Code
from .expressions import has_comma, parenthesized, with_last

if TYPE_CHECKING:
    from .writer import Writing


def arranged(call: cst.Call, change: ArrangeArguments, writing: Writing) -> cst.Call:
    """A call with its arguments in another order, in the places of the old ones."""
    slots = call.args
    new: list[cst.Arg] = []
    for item in change.arguments:
        if isinstance(item, Code):
            new.append(cst.Arg(writing.expression(item)))
            continue
        arg = writing.item(item)
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
    """A call whose argument number `index` is passed as `*argument`: item by item.

    A list, tuple or set loses its brackets instead, where no comment is lost with them.
    """
    arg = call.args[index]
    if isinstance(arg.value, cst.List | cst.Tuple | cst.Set):
        plain = _without_brackets(call, index, arg.value)
        if plain is not None and _comments(plain) == _comments(call):
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
    if is_alone and _breaks(opening) and not _breaks(call.whitespace_before_args):
        # The layout inside of the brackets becomes that of the call.
        last = args[-1]
        if has_comma(last):
            comma: Any = last.comma
            args[-1] = last.with_changes(comma=comma.with_changes(whitespace_after=closing))
        else:
            args[-1] = last.with_changes(whitespace_after_arg=closing)
        return call.with_changes(whitespace_before_args=opening, args=args)
    if _breaks(opening):
        if not is_alone:
            return None
        args = [_on_a_line(arg, call.whitespace_before_args) for arg in args]
    args[-1] = args[-1].with_changes(comma=arg.comma, whitespace_after_arg=arg.whitespace_after_arg)
    return call.with_changes(args=[*call.args[:index], *args, *call.args[index + 1 :]])


def _argument(item: cst.BaseElement) -> cst.Arg:
    star = "*" if isinstance(item, cst.StarredElement) else ""
    return cst.Arg(item.value, star=star, comma=item.comma)  # type: ignore[arg-type]


def _inside(value: Any) -> tuple[Any, Any]:
    """The whitespace behind the opening bracket and in front of the closing one."""
    match value:
        case cst.List():
            return value.lbracket.whitespace_after, value.rbracket.whitespace_before
        case cst.Set():
            return value.lbrace.whitespace_after, value.rbrace.whitespace_before
    return value.lpar[-1].whitespace_after, value.rpar[0].whitespace_before


def _breaks(space: cst.BaseParenthesizableWhitespace) -> bool:
    return isinstance(space, cst.ParenthesizedWhitespace)


def _on_a_line(arg: Any, space: Any) -> Any:
    """An argument whose comma ends the line, if it does, with the indentation of `space`."""
    if not has_comma(arg) or not _breaks(arg.comma.whitespace_after):
        return arg
    after = arg.comma.whitespace_after.with_changes(indent=space.indent, last_line=space.last_line)
    return arg.with_changes(comma=arg.comma.with_changes(whitespace_after=after))


def _comments(node: cst.CSTNode) -> list[str]:
    return [comment.value for comment in m.findall(node, m.Comment())]  # type: ignore[attr-defined]
