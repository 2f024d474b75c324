"""New code as LibCST nodes: text is parsed, and nodes of the file replace names in braces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import libcst as cst

from ..errors import CodemodError
from ..text.escapes import bare_lines_of
from .expressions import bare, is_open, parenthesized, spans_lines

_MARK = "REMAT_MIGRATE_{}"


def parse_expression(
    text: str, parts: Mapping[str, cst.BaseExpression], config: cst.PartialParserConfig
) -> cst.BaseExpression:
    """Return an expression; `{name}` in the text stands for one of `parts`.

    Raises:
        CodemodError: the text is no expression.
    """
    # In parentheses, because it may span lines; they are removed again.
    node = _parsed(cst.parse_expression, f"({_marked(text, parts)})", config)
    node = node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])
    filled: cst.BaseExpression = _filled(node, parts)
    return filled


def parse_statement(
    text: str, parts: Mapping[str, cst.BaseExpression], config: cst.PartialParserConfig
) -> cst.SimpleStatementLine | cst.BaseCompoundStatement:
    """Return a statement; `{name}` in the text stands for one of `parts`.

    Raises:
        CodemodError: the text is no statement.
    """
    node = _parsed(cst.parse_statement, _marked(text, parts), config).visit(_Indents())
    filled: cst.SimpleStatementLine | cst.BaseCompoundStatement = _filled(node, parts)
    return filled


def _parsed(parse: Callable[..., Any], text: str, config: cst.PartialParserConfig) -> Any:
    try:
        return parse(text, config)
    except cst.ParserSyntaxError as error:
        raise CodemodError(f"the new code does not parse: {text}") from error


def _marked(text: str, parts: Mapping[str, object]) -> str:
    for name in parts:
        text = text.replace(f"{{{name}}}", _MARK.format(name))
    return text


def _filled(node: Any, parts: Mapping[str, cst.BaseExpression]) -> Any:
    if not parts:
        return node
    marked = {_MARK.format(name): part for name, part in parts.items()}
    if isinstance(node, cst.Name):
        return marked.get(node.value, node)
    return node.visit(_Filler(marked))


class _Indents(cst.CSTTransformer):
    """Indents blocks as the file does."""

    def leave_IndentedBlock(
        self, original: cst.IndentedBlock, updated: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return updated.with_changes(indent=None)


class _Filler(cst.CSTTransformer):
    """Replaces marked names with parts."""

    def __init__(self, marked: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.marked = marked

    def on_leave(self, original: Any, updated: Any) -> Any:
        updated = super().on_leave(original, updated)
        for name in original.__dataclass_fields__:
            child = getattr(original, name)
            if isinstance(child, cst.Name) and child.value in self.marked:
                part = self.marked[child.value]
                part = bare(part) if is_open(original, child) else parenthesized(part)
                updated = updated.with_changes(**{name: part})
        if isinstance(original, cst.Call) and not spans_lines(original):
            if any(map(spans_lines, updated.args)):
                return _around_lines(updated)
        return updated


def _around_lines(call: cst.Call) -> cst.Call:
    """Return a new call of which an argument has several lines, with those where they belong."""
    arg = next(arg for arg in call.args if spans_lines(arg))
    lines = bare_lines_of(cst.Module([]).code_for_node(arg.value))
    first, following, last = lines[0], lines[1], lines[-1]
    base = last[: len(last) - len(last.lstrip())]
    if not last.lstrip().startswith((")", "]", "}")) or not first.endswith(("(", "[", "{")):
        # Lines that are aligned with the first one stay so.
        shift = _Shift(len(cst.Module([]).code_for_node(call.func)) + 1)
        return call.with_changes(args=[arg.visit(shift) for arg in call.args])
    inside = following[: len(following) - len(following.lstrip())]
    shift = _Shift(len(inside) - len(base))
    opening, closing = (
        cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(text))
        for text in (inside, base)
    )
    *head, end = [cst.ensure_type(arg.visit(shift), cst.Arg) for arg in call.args]
    head = [arg.with_changes(comma=cst.Comma(whitespace_after=opening)) for arg in head]
    if head:
        end = end.with_changes(comma=cst.Comma(whitespace_after=closing))
    else:
        end = end.with_changes(whitespace_after_arg=closing)
    return call.with_changes(whitespace_before_args=opening, args=[*head, end])


class _Shift(cst.CSTTransformer):
    """Indents the lines within brackets by more spaces."""

    def __init__(self, spaces: int) -> None:
        super().__init__()
        self.more = " " * spaces

    def leave_ParenthesizedWhitespace(
        self, original: cst.ParenthesizedWhitespace, updated: cst.ParenthesizedWhitespace
    ) -> cst.ParenthesizedWhitespace:
        lines = [
            line.with_changes(whitespace=self._more(line.whitespace)) if line.comment else line
            for line in updated.empty_lines
        ]
        return updated.with_changes(empty_lines=lines, last_line=self._more(updated.last_line))

    def _more(self, space: cst.SimpleWhitespace) -> cst.SimpleWhitespace:
        return cst.SimpleWhitespace(space.value + self.more)
