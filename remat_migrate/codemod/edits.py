"""The smallest edits between a statement and its new text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from ..source import Edit, Span
from .locate import Chunk

_WORDS = re.compile(r"\r\n|\w+|[ \t]+|\W")
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$")


def edits_between(chunk: Chunk, new: str) -> Iterator[Edit]:
    """What differs between a statement and its new text: by lines, in those by words."""
    path = chunk.source.path
    for at, gone, put in _hunks(0, _LINES.findall(chunk.text), _LINES.findall(new)):
        if gone and put:
            pairs = _hunks(at, _WORDS.findall(gone), _WORDS.findall(put))
        else:
            pairs = iter([(at, gone, put)])
        for low, before, after in pairs:
            yield Edit(path, chunk.offset(low), chunk.offset(low + len(before)), after)


def joined(edits: Iterable[Edit], whole: Sequence[Span], text: str) -> Iterator[Edit]:
    """Edits, those within one of the ranges as one: other fixes must not edit what is between."""
    last: Edit | None = None
    for edit in edits:
        if last is None:
            last = edit
        elif any(start <= last.start and edit.end <= end for start, end in whole):
            between = text[last.end : edit.start]
            last = Edit(edit.path, last.start, edit.end, last.text + between + edit.text)
        else:
            yield last
            last = edit
    if last is not None:
        yield last


def _hunks(base: int, old: list[str], new: list[str]) -> Iterator[tuple[int, str, str]]:
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    base += sum(map(len, old[:same]))
    old, new = old[same:], new[same:]
    starts = [base]
    for part in old:
        starts.append(starts[-1] + len(part))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag != "equal":
            yield starts[i], "".join(old[i:j]), "".join(new[k:m])
