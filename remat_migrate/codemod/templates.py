"""New code as LibCST nodes: text is parsed, and nodes of the file replace names in braces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import libcst as cst

from ..errors import CodemodError
from .expressions import bare, is_open, parenthesized

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
        return updated
