"""New code as LibCST nodes: text is parsed, and nodes of the file replace names in braces."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import libcst as cst

from ..errors import CodemodError
from .changes import Code
from .expressions import bare, is_open, parenthesized, stripped
from .locate import Chunk, config_of
from .transformer import Statement, Transformer

_MARK = "REMAT_MIGRATE_{}"


class NewStatementNodes:
    """The new nodes of one top-level statement."""

    def __init__(self, chunk: Chunk, transformer: Transformer) -> None:
        self._chunk = chunk
        self._transformer = transformer

    def new(self, node: ast.AST) -> Any:
        """Return the new node of a part, which other Changes may have changed."""
        found = self._chunk.find(node)
        return self._transformer.now.get(found, found)

    def item(self, node: ast.AST) -> Any:
        """Return the same for the item of a list that holds a part: an argument, an element."""
        found = self._chunk.holder(node)
        return self._transformer.now.get(found, found)

    def expression(self, code: Code, own: ast.AST | None = None, updated: Any = None) -> Any:
        """New code as a node; `updated` is the node of `own`, if that is one of its parts.

        Raises:
            CodemodError: the text is no expression.
        """
        # In parentheses, because it may span lines; they are removed again.
        node = self._parsed(cst.parse_expression, code, f"({code.text})")
        node = node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])
        # Parentheses around `own` stay where they are, or go with it where it needs some.
        return _filled(
            node,
            {
                _MARK.format(name): stripped(updated)
                if part is own and updated is not None
                else self._part(part)
                for name, part in code.parts
            },
        )

    def statement(self, code: Code) -> Statement:
        """Return the same for a statement.

        Raises:
            CodemodError: the text is no statement.
        """
        node = self._parsed(cst.parse_statement, code, code.text).visit(_Indents())
        parts = {_MARK.format(name): self._part(part) for name, part in code.parts}
        filled: Statement = _filled(node, parts)
        return filled

    def _parsed(self, parse: Callable[..., Any], code: Code, text: str) -> Any:
        for name, _ in code.parts:
            text = text.replace(f"{{{name}}}", _MARK.format(name))
        try:
            return parse(text, config_of(self._chunk.source))
        except cst.ParserSyntaxError as error:
            raise CodemodError(f"the new code does not parse: {text}") from error

    def _part(self, node: ast.expr) -> Any:
        found = self._chunk.find(node)
        # What is replaced and put elsewhere is put there as it was.
        work = self._transformer
        return (work.inner if found in work.replaced else work.now).get(found, found)


def _filled(node: Any, marked: Mapping[str, cst.BaseExpression]) -> Any:
    if isinstance(node, cst.Name):
        return marked.get(node.value, node)
    return node.visit(_Filler(marked)) if marked else node


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
