"""The minimal edits between a statement and its new text."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from ..text import Edit, Span
from ..text.escapes import lines_of
from .locate import Chunk

_WORDS = re.compile(r"\r\n|\w+|[ \t]+|\W")
_BRACKETS = re.compile(r"[()\[\]{}]")

# The time to compare more words is quadratic: what they end with alike is cut off first.
_MOST_WORDS = 500

# An offset, the text that is replaced there, and its replacement.
_Hunk = tuple[int, str, str]


def edits_between(chunk: Chunk, new: str) -> Iterator[Edit]:
    """Yield the differences between a statement and its new text, by line, then by word."""
    path = chunk.source.path
    hunks: list[_Hunk] = []
    for at, gone, put in _hunks(0, lines_of(chunk.text), lines_of(new)):
        for low, before, after in _hunks_in_lines(at, gone, put):
            if hunks and hunks[-1][0] + len(hunks[-1][1]) == low:
                start, earlier, text = hunks.pop()
                low, before, after = start, earlier + before, text + after
            hunks.append((low, before, after))
    lone_return = chunk.source.newline == "\r"
    for low, before, after in _balanced(chunk.text, hunks):
        text = after.replace("\n", "\r") if lone_return else after
        yield Edit(path, chunk.offset(low), chunk.offset(low + len(before)), text)


def _balanced(text: str, hunks: Sequence[_Hunk]) -> list[_Hunk]:
    """Hunks extended until each holds both brackets of a pair, or neither.

    Code between two brackets keeps its meaning only while they match: an edit of one bracket must
    not be made without the edit of the other.
    """
    found: list[_Hunk] = []
    rest = list(reversed(hunks))
    while rest:
        at, gone, put = rest.pop()
        while lacking := _lacking(gone) or _lacking(put):
            end = at + len(gone)
            if lacking == "opening" and found and found[-1][0] + len(found[-1][1]) == at:
                at, before, after = found.pop()
                gone, put = before + gone, after + put
            elif lacking == "opening" and at > 0:
                low = found[-1][0] + len(found[-1][1]) if found else 0
                start = max([low, *(m.start() for m in _BRACKETS.finditer(text, low, at))])
                gone, put, at = text[start:at] + gone, text[start:at] + put, start
            elif lacking == "closing" and rest and rest[-1][0] == end:
                _, before, after = rest.pop()
                gone, put = gone + before, put + after
            elif lacking == "closing" and end < len(text):
                high = rest[-1][0] if rest else len(text)
                bracket = _BRACKETS.search(text, end, high)
                stop = bracket.end() if bracket else high
                gone, put = gone + text[end:stop], put + text[end:stop]
            else:
                break
        found.append((at, gone, put))
    return found


def _lacking(text: str) -> str:
    """Return the bracket of a pair that a piece of code lacks: "opening", "closing", or ""."""
    depth = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "([{" else -1
        if depth < 0:
            return "opening"
    return "closing" if depth else ""


def joined(edits: Iterable[Edit], whole: Sequence[Span], text: str) -> list[Edit]:
    """Return edits, merged within each range: other fixes must not edit the text between them."""
    found: list[Edit] = []
    for edit in edits:
        last = found[-1] if found else None
        if last and any(start <= last.start and edit.end <= end for start, end in whole):
            between = text[last.end : edit.start]
            found[-1] = Edit(edit.path, last.start, edit.end, last.text + between + edit.text)
        else:
            found.append(edit)
    return found


def _hunks_in_lines(at: int, gone: str, put: str) -> Iterator[_Hunk]:
    """Yield the words that differ between some lines and what replaces them.

    Lines that only have another indentation belong together. The words that others have in common
    may have nothing to do with each other, unless there are as many lines as before.
    """
    old, new = lines_of(gone), lines_of(put)
    matcher = difflib.SequenceMatcher(None, [*map(str.strip, old)], [*map(str.strip, new)], False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal" or j - i == m - k:
            for before, after in zip(old[i:j], new[k:m], strict=True):
                yield from _hunks(at, _WORDS.findall(before), _WORDS.findall(after))
                at += len(before)
        else:
            before, after = "".join(old[i:j]), "".join(new[k:m])
            yield _trimmed(at, _WORDS.findall(before), _WORDS.findall(after))
            at += len(before)


def _trimmed(base: int, old: list[str], new: list[str]) -> _Hunk:
    """One hunk, without the words at both ends that stay."""
    same = _common(old, new)
    base += sum(map(len, old[:same]))
    old, new = old[same:], new[same:]
    if kept := _common(old[::-1], new[::-1]):
        old, new = old[:-kept], new[:-kept]
    return base, "".join(old), "".join(new)


def _common(first: list[str], second: list[str]) -> int:
    """Return how many items two lists have in common at their start."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _hunks(base: int, old: list[str], new: list[str]) -> Iterator[_Hunk]:
    same = _common(old, new)
    base += sum(map(len, old[:same]))
    old, new = old[same:], new[same:]
    if len(old) > _MOST_WORDS and (kept := _common(old[::-1], new[::-1])):
        old, new = old[:-kept], new[:-kept]
    starts = [base]
    for part in old:
        starts.append(starts[-1] + len(part))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "insert" and new[k] == "=" and i and old[i - 1] == new[m - 1]:
            # Not `policy` followed by `=policy`, but `policy=` in front of `policy`.
            i, j, k, m = i - 1, j - 1, k - 1, m - 1
        if tag != "equal":
            yield starts[i], "".join(old[i:j]), "".join(new[k:m])
