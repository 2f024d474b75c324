"""The LibCST nodes of new code, and the new nodes of the parts that it holds."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from . import templates
from .changes import Code
from .expressions import Expressions, stripped
from .locate import Chunk, Statement, config_of


class NewStatementNodes:
    """The new nodes of one top-level statement.

    Attributes:
        chunk: the statement.
        config: how new lines are indented and ended.
        inserted: makes the inserted statements, once all expressions are changed.
    """

    def __init__(self, chunk: Chunk, work: Expressions) -> None:
        self.chunk = chunk
        self.config = config_of(chunk.source)
        self.inserted: list[Callable[[], None]] = []
        self._work = work

    def new(self, node: ast.AST) -> Any:
        """Return the new node of a part, which other Changes may have changed."""
        found = self.chunk.find(node)
        return self._work.now.get(found, found)

    def item(self, node: ast.AST) -> Any:
        """Return the same for the item of a list that holds a part: an argument, an element."""
        found = self.chunk.holder(node)
        return self._work.now.get(found, found)

    def expression(self, code: Code, own: ast.AST | None = None, updated: Any = None) -> Any:
        """New code as a node; `updated` is the node of `own`, if that is one of its parts."""
        return templates.parse_expression(code.text, self._parts(code, own, updated), self.config)

    def statement(self, code: Code) -> Statement:
        """Return the same for a statement."""
        return templates.parse_statement(code.text, self._parts(code), self.config)

    def _parts(self, code: Code, own: ast.AST | None = None, updated: Any = None) -> dict[str, Any]:
        return {
            # Parentheses around `own` stay where they are, or go with it where it needs some.
            name: stripped(updated) if part is own and updated is not None else self._part(part)
            for name, part in code.parts
        }

    def _part(self, node: ast.expr) -> Any:
        found = self.chunk.find(node)
        # What is replaced and put elsewhere is put there as it was.
        known = self._work.inner if found in self._work.replaced else self._work.now
        return known.get(found, found)
