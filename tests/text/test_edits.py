"""Edits of a text, and the mapping of offsets."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remat_migrate.errors import ApplyError
from remat_migrate.text import Edit, OffsetMap, Span, apply_edits

PATH = Path("/project/a.py")


def edit(start: int, end: int, text: str = "") -> Edit:
    return Edit(PATH, start, end, text)


@pytest.mark.parametrize(
    ("edits", "text"),
    [
        ([], "abcdef"),
        ([edit(0, 6)], ""),
        ([edit(1, 3, "X")], "aXdef"),
        ([edit(0, 0, "X"), edit(6, 6, "Y")], "XabcdefY"),
        ([edit(3, 5, "Y"), edit(1, 3, "X")], "aXYf"),
        ([edit(1, 3), edit(3, 3, "Y")], "aYdef"),
        ([edit(2, 2, "X"), edit(2, 2, "X")], "abXcdef"),
        ([edit(2, 4, "Y"), edit(2, 2, "X")], "abXYef"),
    ],
    ids=[
        "none",
        "all",
        "replace",
        "both ends",
        "adjacent",
        "behind a deletion",
        "the same twice",
        "in front of a replacement",
    ],
)
def test_apply_edits(edits: list[Edit], text: str) -> None:
    assert apply_edits("abcdef", edits) == text


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([edit(0, 3), edit(2, 4)], "overlap at offset 2"),
        ([edit(2, 2, "X"), edit(2, 2, "Y")], "overlap at offset 2"),
        ([edit(2, 2, "X"), edit(2, 2, "Y"), edit(2, 3)], "overlap at offset 2"),
        ([edit(2, 4, "X"), edit(2, 3, "Y")], "overlap at offset 2"),
        ([edit(1, 4), edit(2, 2, "X")], "overlap at offset 2"),
        ([edit(4, 7)], "outside the text"),
        ([edit(3, 2)], "outside the text"),
        ([edit(-1, 2)], "outside the text"),
    ],
)
def test_invalid_edits(edits: list[Edit], message: str) -> None:
    with pytest.raises(ApplyError, match=message):
        apply_edits("abcdef", edits)


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ((0, 2), (2, 4), False),
        ((0, 3), (2, 4), True),
        ((0, 4), (1, 2), True),
        ((2, 2), (2, 2), True),
        ((2, 2), (2, 4), True),
        ((2, 2), (0, 2), False),
        ((2, 2), (1, 4), True),
        ((2, 2), (3, 3), False),
    ],
)
def test_spans_overlap_both_ways(
    one: tuple[int, int], other: tuple[int, int], overlap: bool
) -> None:
    assert Span(*one).overlaps(Span(*other)) is overlap
    assert Span(*other).overlaps(Span(*one)) is overlap


TEXT = "0123456789"


@st.composite
def edit_sets(draw: st.DrawFn) -> list[Edit]:
    edits: list[Edit] = []
    for start, width, text in draw(
        st.lists(st.tuples(st.integers(0, 10), st.integers(0, 4), st.text("xyz", max_size=3)))
    ):
        new = edit(start, min(start + width, 10), text)
        if all(_fit(new, other) for other in edits):
            edits.append(new)
    return edits


def _fit(one: Edit, other: Edit) -> bool:
    in_front = one.start == other.start and (one.start == one.end) != (other.start == other.end)
    return in_front or not one.span.overlaps(other.span)


@given(edit_sets())
def test_moved_maps_kept_characters(edits: list[Edit]) -> None:
    after = apply_edits(TEXT, edits)
    offsets = OffsetMap(edits)
    kept = [n for n in range(10) if offsets.kept(n)]
    assert kept == [n for n in range(10) if not any(e.start <= n < e.end for e in edits)]
    assert [after[offsets.moved(n)] for n in kept] == [TEXT[n] for n in kept]


@given(edit_sets(), st.randoms())
def test_the_order_of_edits_does_not_matter(edits: list[Edit], random: object) -> None:
    assert apply_edits(TEXT, edits) == apply_edits(TEXT, edits[::-1])
    one, other = OffsetMap(edits), OffsetMap(edits[::-1])
    assert [one.before(n) for n in range(11)] == [other.before(n) for n in range(11)]


@given(edit_sets())
def test_new_text_is_between_before_and_after(edits: list[Edit]) -> None:
    after = apply_edits(TEXT, edits)
    offsets = OffsetMap(edits)
    for one in edits:
        assert one.text in after[offsets.before(one.start) : offsets.after(one.end)]


@given(edit_sets(), st.integers(0, 10))
def test_boundaries_surround_insertions(edits: list[Edit], at: int) -> None:
    after = apply_edits(TEXT, edits)
    offsets = OffsetMap(edits)
    before, behind = offsets.before(at), offsets.after(at)
    assert 0 <= before <= behind <= len(after)
    touching = [e for e in edits if e.start <= at <= e.end]
    assert behind - before == sum(len(e.text) for e in touching)
    if at < 10 and offsets.kept(at):
        assert behind == offsets.moved(at)


@given(edit_sets(), st.integers(0, 9), st.integers(1, 5))
def test_untouched_ranges_keep_their_text(edits: list[Edit], start: int, width: int) -> None:
    end = min(10, start + width)
    offsets = OffsetMap(edits)
    if offsets.untouched(start, end):
        after = apply_edits(TEXT, edits)
        new = offsets.moved(start)
        assert after[new : new + end - start] == TEXT[start:end]
    else:
        assert any(e.start < end and e.end > start for e in edits)
