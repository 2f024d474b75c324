"""Edits, which replace character ranges, and what a set of them does to a text."""

from __future__ import annotations

import bisect
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
        """Return whether two spans share a character, or one is empty and inside or at the start of
        the other.
        """
        if self.start == other.start:
            return True
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace `text[start:end]` of a file, in characters; an empty range inserts."""

    path: Path
    start: int
    end: int
    text: str

    @property
    def span(self) -> Span:
        """The range that is replaced."""
        return Span(self.start, self.end)


class Replacement(NamedTuple):
    """New text for a range of characters of a file on disk."""

    start: int
    end: int
    text: str


def apply_replacements(text: str, replacements: Iterable[tuple[int, int, str]]) -> str:
    """Replace ranges of a text, given in order and without overlaps."""
    parts: list[str] = []
    at = 0
    for start, end, new in replacements:
        parts += (text[at:start], new)
        at = end
    return "".join([*parts, text[at:]])


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits of one file, which must not overlap.

    An insertion goes before a replacement that starts at the same offset. Duplicate edits are
    applied once.

    Raises:
        ApplyError: two edits overlap, or one is outside the text.
    """
    ordered = sorted(set(edits))
    at = 0
    previous: Edit | None = None
    for edit in ordered:
        if not 0 <= edit.start <= edit.end <= len(text):
            raise ApplyError(
                f"{edit.path}: an edit of characters {edit.start} to {edit.end} is outside"
                f" the text of {len(text)} characters"
            )
        if edit.start < at or (previous and previous.start == edit.start == edit.end):
            raise ApplyError(f"{edit.path}: two edits overlap at offset {edit.start}")
        at = edit.end
        previous = edit
    return apply_replacements(text, ((edit.start, edit.end, edit.text) for edit in ordered))


class OffsetMap:
    """Maps offsets of a text to offsets after non-overlapping edits."""

    def __init__(self, edits: Iterable[Edit]) -> None:
        ordered = sorted(set(edits))
        self._starts = [edit.start for edit in ordered]
        self._ends = [edit.end for edit in ordered]
        self._shifts = [0]
        for edit in ordered:
            self._shifts.append(self._shifts[-1] + len(edit.text) - (edit.end - edit.start))

    def untouched(self, start: int, end: int) -> bool:
        """Return whether no character of a range is replaced and nothing is inserted within it."""
        index = bisect.bisect_left(self._starts, end)
        return index == 0 or self._ends[index - 1] <= start

    def moved(self, offset: int) -> int:
        """Return the new offset of a kept character, or the end of a replaced character's
        replacement.
        """
        index = bisect.bisect_right(self._starts, offset)
        if index and self._ends[index - 1] > offset:
            offset = self._ends[index - 1]
        return offset + self._shifts[index]

    def spread(self, offset: int) -> tuple[int, int]:
        """Return where a character may be now: one offset, or the ends of what replaced it."""
        index = bisect.bisect_right(self._starts, offset)
        if index == 0 or self._ends[index - 1] <= offset:
            return self.moved(offset), self.moved(offset)
        first = bisect.bisect_left(self._ends, offset)
        return self._starts[first] + self._shifts[first], self.moved(offset)
