"""Writes LibCST nodes: expressions in parentheses or without, items of lists, arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import libcst as cst

from ..errors import CodemodError
from .lines import Lines, all_comments, comments_in, is_line_break, own_lines, with_comments

N = TypeVar("N", bound=cst.CSTNode)

_ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Subscript,
    cst.Call,
    cst.BaseNumber,
    cst.BaseString,
    cst.List,
    cst.Dict,
    cst.Set,
    cst.ListComp,
    cst.DictComp,
    cst.SetComp,
)

# Nodes whose expressions need no parentheses.
_OPEN = (
    cst.Arg,
    cst.Element,
    cst.Assign,
    cst.AnnAssign,
    cst.Return,
    cst.Expr,
    cst.Decorator,
    cst.DictElement,
    cst.SubscriptElement,
    cst.Index,
    cst.WithItem,
)


def is_open(holder: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Return whether an expression needs no parentheses in place of `node`, a child of `holder`."""
    match holder:
        case cst.Lambda(body=part) | cst.For(target=part) if part is node:
            return True
    return isinstance(holder, _OPEN)


def is_atom(node: cst.BaseExpression) -> bool:
    """Return whether an expression needs no parentheses anywhere."""
    return isinstance(node, _ATOMS) or bool(node.lpar)


def parenthesized(node: N) -> N:
    """Return an expression in parentheses, unless it needs none."""
    if not isinstance(node, cst.BaseExpression) or is_atom(node):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def bare(node: N) -> N:
    """Return an expression without its parentheses, unless it spans lines."""
    return node if spans_lines(node) else stripped(node)


def stripped(node: N) -> N:
    """Return an expression without its parentheses."""
    if not isinstance(node, cst.BaseExpression) or not node.lpar:
        return node
    if isinstance(node, cst.Tuple | cst.GeneratorExp | cst.Yield | cst.NamedExpr):
        return node  # they are part of it
    return node.with_changes(lpar=[], rpar=[])


def spans_lines(node: cst.CSTNode) -> bool:
    """Return whether a node spans several lines."""
    return "\n" in cst.Module([]).code_for_node(node)


def renamed(node: Any, name: str) -> Any:
    """Return a renamed node; the new name of an import may be dotted."""
    match node:
        case cst.Attribute():
            return node.with_changes(attr=cst.Name(name))
        case cst.Arg():
            return node.with_changes(keyword=cst.Name(name))
        case cst.SimpleString(prefix=prefix, quote=quote):
            return node.with_changes(value=f"{prefix}{quote}{name}{quote}")
        case cst.ImportAlias():
            return node.with_changes(name=cst.parse_expression(name))
    raise CodemodError(f"{type(node).__name__} has no name")


# -- items of lists


def without_items(holder: Any, name: str, dropped: Sequence[bool]) -> Any:
    """Return a node without some items of a list; an empty statement is removed later."""
    if all(dropped):
        match holder:
            case cst.Import() | cst.ImportFrom():
                return holder
            case cst.Set():
                return cst.parse_expression("set()")
            case cst.Tuple():
                return cst.parse_expression("()")
    if name == "decorators":
        return _drop_decorators(holder, dropped)
    items = list(getattr(holder, name))
    left: list[Any] = []
    for item, gone in zip(items, dropped, strict=True):
        if not gone:
            left.append(item)
        elif left:
            left[-1] = _closing_up(left[-1], item, is_last=item is items[-1])
    if isinstance(holder, cst.Tuple) and len(left) == 1 and not has_comma(left[0]):
        left[0] = left[0].with_changes(comma=cst.Comma())
    return holder.with_changes(**{name: left})


_NOTHING = cst.SimpleWhitespace("")


def _closing_up(previous: Any, item: Any, *, is_last: bool) -> Any:
    """Return the item before a removed one, with that one's line break, comma, and comments."""
    texts = comments_in(item)
    space = previous.comma.whitespace_after if breaks_line(previous) else None
    has_notes = space is not None and (texts or all_comments(space))
    if not is_last:
        if space is None and breaks_line(item):
            return previous.with_changes(comma=item.comma)
        if space is not None and texts:
            noted = with_comments(space, space, texts)
            return previous.with_changes(comma=previous.comma.with_changes(whitespace_after=noted))
        return previous
    fields: dict[str, Any] = {"comma": item.comma}
    if isinstance(item, cst.Arg):
        fields["whitespace_after_arg"] = item.whitespace_after_arg
    if has_notes:
        # The comments between the two and after the last are moved before the closing bracket.
        if has_comma(item):
            noted = with_comments(space, item.comma.whitespace_after, texts)
            fields["comma"] = item.comma.with_changes(whitespace_after=noted)
        elif isinstance(item, cst.Arg):
            fields["whitespace_after_arg"] = with_comments(space, item.whitespace_after_arg, texts)
        else:
            comma = previous.comma
            ending = comma.whitespace_after.with_changes(last_line=_NOTHING)
            noted = with_comments(space, ending, texts)
            fields["comma"] = comma.with_changes(whitespace_after=noted)
    return previous.with_changes(**fields)


def has_comma(item: Any) -> bool:
    """Return whether a comma follows an item."""
    return isinstance(item.comma, cst.Comma)


def breaks_line(item: Any) -> bool:
    """Return whether the line ends after the comma of an item."""
    return has_comma(item) and is_line_break(item.comma.whitespace_after)


def with_commas(items: Sequence[N], spaces: Sequence[Any]) -> list[N]:
    """Items, each followed by a comma and whitespace."""
    return [
        item.with_changes(comma=cst.Comma(whitespace_after=space))
        for item, space in zip(items, spaces, strict=True)
    ]


def _drop_decorators(holder: Any, dropped: Sequence[bool]) -> Any:
    left: list[cst.Decorator] = []
    carried: Lines = []
    for item, gone in zip(holder.decorators, dropped, strict=True):
        if gone:
            carried += own_lines(comments_in(item))
            continue
        if carried:
            item = item.with_changes(leading_lines=[*carried, *item.leading_lines])
            carried = []
        left.append(item)
    lines = [*carried, *holder.lines_after_decorators]
    return holder.with_changes(decorators=left, lines_after_decorators=lines)


# -- arguments of calls

TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def keyword_argument(name: str, value: cst.BaseExpression) -> cst.Arg:
    """`name=value`."""
    if isinstance(value, cst.NamedExpr):
        value = parenthesized(value)
    return cst.Arg(value, cst.Name(name), TIGHT)


def named(arg: cst.Arg, name: str) -> cst.Arg:
    """Return a positional argument as a keyword."""
    new = keyword_argument(name, arg.value)
    return new.with_changes(comma=arg.comma, whitespace_after_arg=arg.whitespace_after_arg)


def with_argument(call: cst.Call, name: str, value: cst.BaseExpression) -> cst.Call:
    """Return a call with a keyword argument: replaced, or added as the last one."""
    for index, arg in enumerate(call.args):
        if arg.keyword is not None and arg.keyword.value == name:
            args = [*call.args[:index], arg.with_changes(value=value), *call.args[index + 1 :]]
            return call.with_changes(args=args)
    return with_last(call, [keyword_argument(name, value)])


def with_first(call: cst.Call, value: cst.BaseExpression) -> cst.Call:
    """Return a call with a new first argument, on its own line if the others are."""
    space: Any = call.whitespace_before_args
    if not call.args:
        return call.with_changes(args=[cst.Arg(value)])
    if not is_line_break(space):
        return call.with_changes(args=[cst.Arg(value), *call.args])
    # Comments above the first argument stay there.
    comma = cst.Comma(whitespace_after=space.with_changes(first_line=cst.TrailingWhitespace()))
    return call.with_changes(
        args=[cst.Arg(value, comma=comma), *call.args],
        whitespace_before_args=space.with_changes(empty_lines=[]),
    )


def with_last(call: cst.Call, added: Sequence[cst.Arg]) -> cst.Call:
    """Return a call with further arguments, laid out like the existing ones."""
    if not call.args:
        return call.with_changes(args=added)
    *head, last = call.args
    each = _own_line(call)
    if each is None:
        final = {"comma": last.comma, "whitespace_after_arg": last.whitespace_after_arg}
        last = last.with_changes(
            comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace("")
        )
        return call.with_changes(args=[*head, last, *added[:-1], added[-1].with_changes(**final)])
    end: Any = last.comma.whitespace_after if has_comma(last) else last.whitespace_after_arg  # type: ignore[union-attr]
    after, closing = each, end
    if is_line_break(end):
        # The comment after the last argument stays there.
        after = end.with_changes(indent=each.indent, last_line=each.last_line)
        closing = each.with_changes(indent=end.indent, last_line=end.last_line)
    last = last.with_changes(
        comma=cst.Comma(whitespace_after=after), whitespace_after_arg=cst.SimpleWhitespace("")
    )
    new = with_commas(added, [*[each] * (len(added) - 1), closing])
    if not has_comma(call.args[-1]):
        new[-1] = added[-1].with_changes(whitespace_after_arg=closing)
    return call.with_changes(args=[*head, last, *new])


def _own_line(call: Any) -> cst.ParenthesizedWhitespace | None:
    """Return the line break before each argument, if all are on their own lines."""
    *head, last = call.args
    before = head[-1].comma.whitespace_after if head else call.whitespace_before_args
    end = last.comma.whitespace_after if has_comma(last) else last.whitespace_after_arg
    if not is_line_break(before):
        return None
    is_alone = not (head or has_comma(last) or spans_lines(last) or comments_in(end))
    if is_alone or not (is_line_break(end) or all(map(breaks_line, head))):
        return None
    plain: cst.ParenthesizedWhitespace = before.with_changes(
        first_line=cst.TrailingWhitespace(), empty_lines=[]
    )
    return plain
