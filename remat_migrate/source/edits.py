"""Edits: replacements of character ranges, and how a set of them changes a text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import ApplyError
from .text import Span


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


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """`text` with `edits` of one file made, none overlapping another.

    Raises:
        ApplyError: two edits overlap or one lies outside the text.
    """
    parts: list[str] = []
    at = 0
    previous: Edit | None = None
    for edit in sorted(set(edits)):
        if edit.start < at or (previous and previous.start == edit.start):
            raise ApplyError(f"{edit.path}: two edits of one fix overlap at offset {edit.start}")
        if edit.end > len(text) or edit.end < edit.start:
            raise ApplyError(f"{edit.path}: an edit lies outside the text")
        parts += (text[at : edit.start], edit.text)
        at = edit.end
        previous = edit
    return "".join([*parts, text[at:]])
