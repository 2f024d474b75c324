"""Where every node of a parsed file stands, and how to find one by its place."""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from .layout import Layout
from .text import SourceFile, Span

# Their parts are text and have no places of their own before Python 3.12.
_LEAVES: tuple[type[ast.AST], ...] = tuple(
    getattr(ast, name) for name in ("JoinedStr", "TemplateStr") if hasattr(ast, name)
)
_INK = re.compile(r"[^\r\n]")


def same_tree(one: object, other: object) -> bool:
    """Whether two trees are equal but for positions. A loop, for sums of a thousand terms."""
    pairs: list[tuple[Any, Any]] = [(one, other)]
    while pairs:
        a, b = pairs.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, ast.AST):
            pairs += ((getattr(a, name, None), getattr(b, name, None)) for name in a._fields)
        elif isinstance(a, list):
            if len(a) != len(b):
                return False
            pairs += zip(a, b, strict=True)
        elif a != b:
            return False
    return True


class PlacedTree:
    """A parsed file with the place of every node.

    Attributes:
        source: the file.
        root: its tree.
        asides: statements of the file's top level whose tokens and comments nobody asks for.
    """

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.root = source.parse()
        self.asides: Sequence[Span] = ()
        self._spans: dict[ast.AST, Span | None] = {}
        self._children: dict[ast.AST, tuple[list[int], list[tuple[Span, ast.AST]]]] = {}

    @cached_property
    def layout(self) -> Layout:
        """The file's tokens and comments; each of the asides is a pair of parentheses."""
        # In a large file cutting into tokens costs twice what parsing does, and edits are few.
        text = self.source.text
        parts: list[str] = []
        at = 0
        for start, end in self.asides:
            if end - start > 1:
                parts += (text[at:start], "(", _INK.sub(" ", text[start + 1 : end - 1]), ")")
                at = end
        return Layout(self.source.replaced("".join([*parts, text[at:]])))

    def span(self, node: ast.AST) -> Span | None:
        """The characters of a node, with its decorators; None if it has none of its own."""
        if node not in self._spans:
            self._spans[node] = self._find_span(node)
        return self._spans[node]

    def _find_span(self, node: ast.AST) -> Span | None:
        if node is self.root:
            return Span(0, len(self.source.text))
        if getattr(node, "end_lineno", None) is not None:
            start, end = self.source.span(node)  # type: ignore[arg-type]
            decorators = getattr(node, "decorator_list", None)
            if decorators:
                first = self.source.span(decorators[0]).start
                start = self.source.text.rindex("@", 0, first)
            return Span(start, end)
        # `arguments`, `comprehension`, `withitem` and `match_case` have none: as far as they reach.
        spans = [span for child in ast.iter_child_nodes(node) if (span := self.span(child))]
        if not spans:
            return None
        return Span(min(start for start, _ in spans), max(end for _, end in spans))

    def children(self, node: ast.AST) -> list[tuple[Span, ast.AST]]:
        """The nodes right below one that have a place, in the order of the text."""
        return self._placed(node)[1]

    def _placed(self, node: ast.AST) -> tuple[list[int], list[tuple[Span, ast.AST]]]:
        if node not in self._children:
            below = () if isinstance(node, _LEAVES) else ast.iter_child_nodes(node)
            placed = [(span, child) for child in below if (span := self.span(child))]
            placed.sort(key=lambda item: item[0])
            self._children[node] = [span.start for span, _ in placed], placed
        return self._children[node]

    def around(self, node: ast.AST, core: Span) -> Iterator[tuple[Span, ast.AST]]:
        """`node` and what is below it, outermost first, as far as it holds a range."""
        span = self.span(node)
        while span is not None and span.start <= core.start and core.end <= span.end:
            yield span, node
            starts, placed = self._placed(node)
            index = bisect.bisect_right(starts, core.start) - 1
            if index < 0:
                return
            span, node = placed[index]

    def outer(self, node: ast.AST) -> Span:
        """A node's characters; for one with a body, with blanks and comments on both sides."""
        span = self.span(node)
        assert span is not None
        if node is self.root or not isinstance(getattr(node, "body", None), list):
            return span
        left, right = self.layout.before(span.start), self.layout.after(span.end)
        return Span(left.end if left else 0, right.start if right else len(self.source.text))


class Siblings:
    """Sibling nodes of the new tree among which, or below which, a part is looked for."""

    def __init__(self, tree: PlacedTree, nodes: Sequence[ast.AST]) -> None:
        self._tree = tree
        self._nodes = nodes
        self._starts = [span.start if (span := tree.span(node)) else 0 for node in nodes]

    def around(self, core: Span) -> Iterator[tuple[Span, ast.AST]]:
        """The nodes that hold a range, outermost first."""
        index = bisect.bisect_right(self._starts, core.start) - 1
        return self._tree.around(self._nodes[index], core) if index >= 0 else iter(())
