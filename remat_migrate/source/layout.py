"""Where the tokens and comments of a Python file stand: what a syntax tree leaves out.

`ast` knows neither comments nor parentheses nor commas. An edit that takes a node out of a text
needs all three.
"""

from __future__ import annotations

import ast
import bisect
import collections
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from .text import SourceFile, Span

_STARTS = {
    number
    for name in ("FSTRING_START", "TSTRING_START")
    if (number := getattr(tokenize, name, None)) is not None
}
_ENDS = {
    number
    for name in ("FSTRING_END", "TSTRING_END")
    if (number := getattr(tokenize, name, None)) is not None
}
_WITHOUT_TEXT = {
    tokenize.NEWLINE,
    tokenize.NL,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_ONE_LINE_STRING = re.compile(r"""\w*(["'])(?!\1\1)""")
_OPENING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its text and place; an f-string is one token of kind STRING."""

    kind: int
    text: str
    start: int
    end: int


@dataclass(eq=False)
class Layout:
    """The tokens of one Python file, by character offset."""

    source: SourceFile
    tokens: list[Token] = field(init=False, default_factory=list)
    comments: list[Token] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        for token in _tokenize(self.source):
            (self.comments if token.kind == tokenize.COMMENT else self.tokens).append(token)

    @cached_property
    def _starts(self) -> list[int]:
        return [token.start for token in self.tokens]

    @cached_property
    def _comment_starts(self) -> list[int]:
        return [token.start for token in self.comments]

    @cached_property
    def _openings(self) -> dict[int, int]:
        """The offset of the bracket that opens, by the offset of the one that closes."""
        found: dict[int, int] = {}
        stack: list[int] = []
        for token in self.tokens:
            if token.kind != tokenize.OP:
                continue
            if token.text in _OPENING:
                stack.append(token.start)
            elif token.text in (")", "]", "}") and stack:
                found[token.start] = stack.pop()
        return found

    @cached_property
    def quote(self) -> str:
        """The quote that most one-line strings of the file have; `"` if there are none."""
        quotes = collections.Counter(
            found.group(1)
            for token in self.tokens
            if token.kind == tokenize.STRING and (found := _ONE_LINE_STRING.match(token.text))
        )
        return "'" if quotes["'"] > quotes['"'] else '"'

    def before(self, offset: int) -> Token | None:
        """The last token that ends at or before `offset`."""
        at = bisect.bisect_left(self._starts, offset) - 1
        while at >= 0 and self.tokens[at].end > offset:
            at -= 1
        return self.tokens[at] if at >= 0 else None

    def after(self, offset: int) -> Token | None:
        """The first token that starts at or after `offset`."""
        at = bisect.bisect_left(self._starts, offset)
        return self.tokens[at] if at < len(self.tokens) else None

    def between(self, start: int, end: int) -> Iterator[Token]:
        """The tokens that start in a range."""
        at = bisect.bisect_left(self._starts, start)
        while at < len(self.tokens) and self.tokens[at].start < end:
            yield self.tokens[at]
            at += 1

    def comments_in(self, start: int, end: int) -> list[Token]:
        """The comments that start in a range."""
        low = bisect.bisect_left(self._comment_starts, start)
        return self.comments[low : bisect.bisect_left(self._comment_starts, end)]

    def opening(self, closing: int) -> int:
        """The offset of the bracket that the one at offset `closing` closes."""
        return self._openings[closing]

    def line_start(self, offset: int) -> int:
        """The offset at which the line of `offset` starts."""
        starts = self.source.line_starts
        return starts[bisect.bisect_right(starts, offset) - 1]

    def line_end(self, offset: int) -> int:
        """The offset at which the line of `offset` ends, its line ending not counted."""
        start = self.next_line(offset)
        while start > offset and self.source.text[start - 1] in "\r\n":
            start -= 1
        return start

    def next_line(self, offset: int) -> int:
        """The offset at which the line after that of `offset` starts, or the end of the text."""
        starts = self.source.line_starts
        at = bisect.bisect_right(starts, offset)
        return starts[at] if at < len(starts) else len(self.source.text)

    def indent(self, offset: int) -> str:
        """The white space at the start of the line of `offset`."""
        start = end = self.line_start(offset)
        while self.source.text[end : end + 1] in (" ", "\t", "\f"):
            end += 1
        return self.source.text[start:end]

    def in_string(self, offset: int) -> bool:
        """Whether `offset` lies within a string (then a line's white space is part of it)."""
        at = bisect.bisect_left(self._starts, offset) - 1
        token = self.tokens[at] if at >= 0 else None
        return token is not None and token.kind == tokenize.STRING and token.end > offset

    def grouped(self, node: ast.expr, outside: Span) -> Span:
        """The span of an expression with the parentheses around it that lie inside `outside`."""
        start, end = self.source.span(node)
        while True:
            left, right = self.before(start), self.after(end)
            if left is None or right is None or left.text != "(" or right.text != ")":
                return Span(start, end)
            if left.start < outside.start or right.end > outside.end:
                return Span(start, end)
            start, end = left.start, right.end


@lru_cache(maxsize=4)
def layout_of(source: SourceFile) -> Layout:
    """The layout of a file, kept for a while: what finds many sites asks for each of them."""
    return Layout(source)


def _tokenize(source: SourceFile) -> Iterator[Token]:
    # Lone carriage returns end lines for `ast` but not for `tokenize`; the lengths stay the same.
    text = source.text.replace("\r\n", "\0").replace("\r", "\n").replace("\0", "\r\n")
    starts = source.line_starts
    depth = opened = 0
    for kind, string, (line, column), (last, width), _ in tokenize.generate_tokens(
        io.StringIO(text, newline="").readline
    ):
        if kind in _STARTS:
            depth += 1
            if depth == 1:
                opened = starts[line - 1] + column
        elif kind in _ENDS:
            depth -= 1
            if depth == 0:
                end = starts[last - 1] + width
                yield Token(tokenize.STRING, source.text[opened:end], opened, end)
        elif depth == 0 and kind not in _WITHOUT_TEXT:
            yield Token(kind, string, starts[line - 1] + column, starts[last - 1] + width)
