"""The tokens, comments, and lines of a Python file, which `ast` leaves out."""

from __future__ import annotations

import bisect
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from .source_file import SourceFile

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


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its text and position; an f-string is one token of kind STRING."""

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
    def _comment_starts(self) -> list[int]:
        return [token.start for token in self.comments]

    def comments_in(self, start: int, end: int) -> list[Token]:
        """Return the comments that start in a range."""
        low = bisect.bisect_left(self._comment_starts, start)
        return self.comments[low : bisect.bisect_left(self._comment_starts, end)]

    def line_start(self, offset: int) -> int:
        """Return where the line at an offset starts."""
        starts = self.source.line_starts
        return starts[bisect.bisect_right(starts, offset) - 1]

    def line_end(self, offset: int) -> int:
        """Return where the line at an offset ends, without its line ending."""
        start = self.next_line(offset)
        while start > offset and self.source.text[start - 1] in "\r\n":
            start -= 1
        return start

    def next_line(self, offset: int) -> int:
        """Return where the line after that at an offset starts, or the end of the text."""
        starts = self.source.line_starts
        at = bisect.bisect_right(starts, offset)
        return starts[at] if at < len(starts) else len(self.source.text)


@lru_cache(maxsize=4)
def layout_of(source: SourceFile) -> Layout:
    """Return the layout of a file; cached, because it is requested for each of many sites."""
    return Layout(source)


def _tokenize(source: SourceFile) -> Iterator[Token]:
    # A lone carriage return ends a line for `ast` but not for `tokenize`; the lengths stay the
    # same.
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
