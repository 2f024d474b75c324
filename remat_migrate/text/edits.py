"""Edits: replacements of character ranges, and how a set of them changes a text."""

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


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """`text` with `edits` of one file made, none overlapping another.

    An insertion goes in front of a replacement that starts where it stands. The same edit twice is
    made once.

    Raises:
        ApplyError: two edits overlap or one lies outside the text.
    """
    parts: list[str] = []
    at = 0
    previous: Edit | None = None
    for edit in sorted(set(edits)):
        if not 0 <= edit.start <= edit.end <= len(text):
            raise ApplyError(
                f"{edit.path}: an edit of characters {edit.start} to {edit.end} lies outside"
                f" the text of {len(text)}"
            )
        if edit.start < at or (previous and previous.start == edit.start == edit.end):
            raise ApplyError(f"{edit.path}: two edits overlap at offset {edit.start}")
        parts += (text[at : edit.start], edit.text)
        at = edit.end
        previous = edit
    return "".join([*parts, text[at:]])


class OffsetMap:
    """Where offsets of a text come to lie when edits of it, none overlapping, are made."""

    def __init__(self, edits: Iterable[Edit]) -> None:
        ordered = sorted(set(edits))
        self._starts = [edit.start for edit in ordered]
        self._ends = [edit.end for edit in ordered]
        self._edits = ordered
        self._shifts = [0]
        for edit in ordered:
            self._shifts.append(self._shifts[-1] + len(edit.text) - (edit.end - edit.start))

    def place(self, edit: Edit) -> Span:
        """Return where the new text of one of the edits stands."""
        index = bisect.bisect_left(self._edits, edit)
        start = edit.start + self._shifts[index]
        return Span(start, start + len(edit.text))

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
