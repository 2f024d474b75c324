"""Groups removed and replaced pieces of a text, each with its causes, into edits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .edits import Edit

Causes = frozenset[int]
# Start, end, new text, and the indices of the changes that cause it.
Piece = tuple[int, int, str, Causes]


def united(causes: Iterable[Causes]) -> Causes:
    """Return the union of all causes."""
    return frozenset[int]().union(*causes)


@dataclass(frozen=True, slots=True)
class Removal:
    """Edits of one file that must be applied together.

    Attributes:
        members: indices of the changes that cause them.
        edits: edits that overlap neither each other nor those of another Removal of the same plan.
    """

    members: frozenset[int]
    edits: tuple[Edit, ...]


def join_pieces(path: Path, text: str, pieces: Sequence[Piece]) -> list[Removal]:
    """Convert pieces of a text to edits, grouped by the changes that share them.

    Pieces may overlap and nest; text put inside a piece that is removed as a whole is dropped. The
    edits of a group depend on each other, such as the removals of two statements that empty a
    block. An empty piece changes nothing, but ties its causes to the piece around it.
    """
    merged = _merged(pieces)
    group: dict[int, int] = {}

    def root(member: int) -> int:
        while group.setdefault(member, member) != member:
            member = group[member]
        return member

    for *_, causes in merged:
        first, *others = sorted(causes)
        root(first)
        for other in others:
            group[root(other)] = root(first)
    members: dict[int, set[int]] = {}
    for member in sorted(group):
        members.setdefault(root(member), set()).add(member)
    edits: dict[int, list[Edit]] = {owner: [] for owner in members}
    for start, end, put, causes in merged:
        if text[start:end] != put:
            edits[root(min(causes))].append(Edit(path, start, end, put))
    return [Removal(frozenset(members[owner]), tuple(own)) for owner, own in edits.items() if own]


def _merged(pieces: Sequence[Piece]) -> list[Piece]:
    merged: list[Piece] = []
    for start, end, put, causes in _outermost(pieces):
        if merged and (start < merged[-1][1] or start == merged[-1][0]):
            low, high, before, why = merged[-1]
            merged[-1] = (low, max(high, end), before + put, why | causes)
        else:
            merged.append((start, end, put, causes))
    return merged


def _outermost(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces in order, without new text inside pieces that are removed as a whole."""
    found: list[Piece] = []
    low = reach = -1
    for start, end, put, causes in sorted(pieces, key=lambda p: (p[0], -p[1], bool(p[2]))):
        inside = start < reach and end <= reach and (start > low or end > start)
        found.append((start, end, "" if inside else put, causes))
        if end > reach:
            low, reach = start, end
    return found
