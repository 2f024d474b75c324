"""The minimal edits between a statement and its new text."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Sequence

from ..text import Edit
from ..text.escapes import lines_of
from .locate import Chunk

_WORDS = re.compile(r"\r\n|\w+|[ \t]+|\W")


def edits_between(chunk: Chunk, new: str) -> list[Edit]:
    """Return the differences between a statement and its new text.

    Each line has an edit of its own, except where one begins at the end of another.
    """
    edits: list[Edit] = []
    for edit in _line_edits(chunk, new):
        if edits and edits[-1].end == edit.start:
            last = edits.pop()
            edit = Edit(edit.path, last.start, edit.end, last.text + edit.text)
        edits.append(edit)
    return edits


def _line_edits(chunk: Chunk, new: str) -> Iterator[Edit]:
    """Yield the differences between a statement and its new text, line by line.

    Lines that only have another indentation belong together. What the words of other lines have in
    common may have nothing to do with each other, unless there are as many lines as before.
    """
    old, now, at = lines_of(chunk.text), lines_of(new), chunk.start
    # The time to compare lines is quadratic: what they start and end with alike is cut off first.
    same = _common(old, now)
    at += sum(map(len, old[:same]))
    old, now = old[same:], now[same:]
    if kept := _common(old[::-1], now[::-1]):
        old, now = old[:-kept], now[:-kept]
    lines, stripped = [*map(str.strip, old)], [*map(str.strip, now)]
    matcher = difflib.SequenceMatcher(None, lines, stripped, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        pairs = [("".join(old[i:j]), "".join(now[k:m]))]
        if tag == "equal" or j - i == m - k:
            pairs = [*zip(old[i:j], now[k:m], strict=True)]
        for before, after in pairs:
            if before != after:
                yield _edit(chunk, at, _WORDS.findall(before), _WORDS.findall(after))
            at += len(before)


def _edit(chunk: Chunk, at: int, old: list[str], new: list[str]) -> Edit:
    """Return an edit without the words at both ends that stay."""
    same = _common(old, new)
    at += sum(map(len, old[:same]))
    old, new = old[same:], new[same:]
    if kept := _common(old[::-1], new[::-1]):
        old, new = old[:-kept], new[:-kept]
    return Edit(chunk.source.path, at, at + sum(map(len, old)), "".join(new))


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many items two lists have in common at their start."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
