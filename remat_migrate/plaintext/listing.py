"""Taking elements out of a list that is written with commas: JSON, TOML, YAML in brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..source.pieces import Causes
from .setting import TextPlan


def drop_elements(
    text: str,
    elements: Sequence[tuple[int, int]],
    dropped: Mapping[int, Causes],
    inside: tuple[int, int],
    plan: TextPlan,
) -> None:
    """Plan a bracketed list without some of its elements.

    Args:
        text: the text.
        elements: the range of each element, quotes and all.
        dropped: the indices of those that go.
        inside: from behind the opening bracket to the closing one.
        plan: the plan to add to.
    """
    index = 0
    while index < len(elements):
        first = index
        while index < len(elements) and index in dropped:
            index += 1
        if first == index:
            index += 1
            continue
        causes: Causes = frozenset().union(*(dropped[at] for at in range(first, index)))
        for start, end in _gaps(text, elements, first, index, inside):
            plan.put(start, end, "", causes)


def _gaps(
    text: str,
    elements: Sequence[tuple[int, int]],
    first: int,
    stop: int,
    inside: tuple[int, int],
) -> list[tuple[int, int]]:
    """The ranges that take `elements[first:stop]` out, with as many commas."""
    start, end = elements[first][0], elements[stop - 1][1]
    comma = _comma(text, end, inside[1])
    behind = end if comma is None else comma + 1
    line = text.rfind("\n", 0, start) + 1
    stops = text.find("\n", behind)
    rest = text[behind : len(text) if stops < 0 else stops]
    if not text[line:start].strip() and stops >= 0 and line > inside[0]:
        hash_ = rest.find("#")
        if not rest.strip():
            # Without a comma behind it, the one before it would be left: it is allowed to trail.
            return [(line, stops + 1), *_stray_comma(text, elements, first, stop, comma)]
        if hash_ >= 0 and not rest[:hash_].strip():
            return [
                (start, behind + hash_),
                *_stray_comma(text, elements, first, stop, comma),
            ]
    if stop < len(elements):
        following = elements[stop][0]
        if "\n" in text[behind:following] and first > 0:
            before = _comma(text, elements[first - 1][1], start)
            assert before is not None
            return [(before + 1, behind)]
        return [(start, following)]
    if first > 0:
        return [(elements[first - 1][1], end)]
    return [(inside[0], inside[1])] if "#" not in text[inside[0] : inside[1]] else [(start, behind)]


def _stray_comma(
    text: str,
    elements: Sequence[tuple[int, int]],
    first: int,
    stop: int,
    comma: int | None,
) -> list[tuple[int, int]]:
    """The comma before the last elements: if none followed them, none is to follow now."""
    if comma is not None or stop < len(elements) or first == 0:
        return []
    before = _comma(text, elements[first - 1][1], elements[first][0])
    return [] if before is None else [(before, before + 1)]


def _comma(text: str, start: int, end: int) -> int | None:
    """The first comma in a range that is in no comment."""
    at = start
    while at < end:
        if text[at] == "#":
            line = text.find("\n", at, end)
            if line < 0:
                return None
            at = line
        elif text[at] == ",":
            return at
        at += 1
    return None
