"""The comments of a Python file, which `ast` leaves out."""

from __future__ import annotations

import io
import tokenize
from functools import lru_cache
from typing import NamedTuple

from .source_file import SourceFile


class Comment(NamedTuple):
    """A comment, and its range in characters."""

    text: str
    start: int
    end: int


@lru_cache(maxsize=4)
def comments_of(source: SourceFile) -> tuple[Comment, ...]:
    """Return the comments of a file; cached, because they are requested for each of many fixes."""
    # A lone carriage return ends a line for `ast` but not for `tokenize`; the lengths stay the
    # same.
    text = source.text.replace("\r\n", "\0").replace("\r", "\n").replace("\0", "\r\n")
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            start = source.line_starts[line - 1] + column
            found.append(Comment(token.string, start, start + len(token.string)))
    return tuple(found)
