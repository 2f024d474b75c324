"""Edits: replacements of character ranges, and how a set of them changes a text."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..errors import ApplyError


class Span(NamedTuple):
    """A half-open range of character offsets."""

    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        """Return whether the two share a character, or an empty one lies within or at the start."""
        if self.start == other.start:
            return True
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace `text[start:end]` of a file; offsets in characters. Empty range: an insertion."""

    path: Path
    start: int
    end: int
    text: str

    @property
    def span(self) -> Span:
        """The range that is replaced."""
        return Span(self.start, self.end)


class Replacement(NamedTuple):
    """Other text for a range of characters of a file as it lies on disk."""

    start: int
    end: int
    text: str


def trimmed(start: int, old: str, new: str) -> Replacement:
    """Return the replacement of `old`, which starts at `start`, without their common ends."""
    ahead = _common_length(old, new)
    behind = _common_length(old[ahead:][::-1], new[ahead:][::-1])
    return Replacement(start + ahead, start + len(old) - behind, new[ahead : len(new) - behind])


def _common_length(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def apply_replacements(text: str, replacements: Iterable[tuple[int, int, str]]) -> str:
    """Return `text` with ranges replaced, which are in order and do not overlap."""
    parts: list[str] = []
    at = 0
    for start, end, new in replacements:
        parts += (text[at:start], new)
        at = end
    return "".join([*parts, text[at:]])


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """`text` with `edits` of one file made, none overlapping another.

    An insertion goes in front of a replacement that starts where it stands. The same edit twice is
    made once.

    Raises:
        ApplyError: two edits overlap or one lies outside the text.
    """
    ordered = sorted(set(edits))
    at = 0
    previous: Edit | None = None
    for edit in ordered:
        if not 0 <= edit.start <= edit.end <= len(text):
            raise ApplyError(
                f"{edit.path}: an edit of characters {edit.start} to {edit.end} lies outside"
                f" the text of {len(text)}"
            )
        if edit.start < at or (previous and previous.start == edit.start == edit.end):
            raise ApplyError(f"{edit.path}: two edits overlap at offset {edit.start}")
        at = edit.end
        previous = edit
    return apply_replacements(text, ((edit.start, edit.end, edit.text) for edit in ordered))


class OffsetMap:
    """Where offsets of a text come to lie when edits of it, none overlapping, are made."""

    def __init__(self, edits: Iterable[Edit]) -> None:
        ordered = sorted(set(edits))
        self._starts = [edit.start for edit in ordered]
        self._ends = [edit.end for edit in ordered]
        self._shifts = [0]
        for edit in ordered:
            self._shifts.append(self._shifts[-1] + len(edit.text) - (edit.end - edit.start))

    def kept(self, offset: int) -> bool:
        """Return whether the character at `offset` is not replaced."""
        index = bisect.bisect_right(self._starts, offset)
        return index == 0 or self._ends[index - 1] <= offset

    def untouched(self, start: int, end: int) -> bool:
        """Return whether no character of a range is replaced and nothing inserted between two of
        them.
        """
        index = bisect.bisect_left(self._starts, end)
        return index == 0 or self._ends[index - 1] <= start

    def moved(self, offset: int) -> int:
        """Return the new offset of a kept character; of a replaced one, where its replacement
        ends.
        """
        index = bisect.bisect_right(self._starts, offset)
        if index and self._ends[index - 1] > offset:
            offset = self._ends[index - 1]
        return offset + self._shifts[index]

    def before(self, offset: int) -> int:
        """Return the new offset of a boundary, in front of the new text of every edit that
        touches it.
        """
        index = bisect.bisect_left(self._ends, offset)
        if index < len(self._starts) and self._starts[index] <= offset:
            offset = self._starts[index]
        return offset + self._shifts[index]

    def after(self, offset: int) -> int:
        """Return the new offset of a boundary, behind the new text of every edit that touches
        it.
        """
        index = bisect.bisect_right(self._starts, offset)
        if index and self._ends[index - 1] >= offset:
            offset = self._ends[index - 1]
        return offset + self._shifts[index]
