"""Edits of a text, and the mapping of offsets."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remat_migrate.errors import ApplyError
from remat_migrate.text import Edit, OffsetMap, apply_edits

PATH = Path("/project/a.py")


def edit(start: int, end: int, text: str = "") -> Edit:
    return Edit(PATH, start, end, text)


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([edit(0, 3), edit(2, 4)], "overlap at offset 2"),
        ([edit(2, 2, "X"), edit(2, 2, "Y")], "overlap at offset 2"),
        ([edit(1, 4), edit(2, 2, "X")], "overlap at offset 2"),
        ([edit(4, 7)], "outside the text"),
        ([edit(-1, 2)], "outside the text"),
    ],
)
def test_invalid_edits(edits: list[Edit], message: str) -> None:
    with pytest.raises(ApplyError, match=message):
        apply_edits("abcdef", edits)


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


@given(edit_sets(), st.randoms())
def test_the_order_of_edits_does_not_matter(edits: list[Edit], random: object) -> None:
    assert apply_edits(TEXT, edits) == apply_edits(TEXT, edits[::-1])
    one, other = OffsetMap(edits), OffsetMap(edits[::-1])
    assert [one.spread(n) for n in range(11)] == [other.spread(n) for n in range(11)]


@given(edit_sets(), st.integers(0, 9))
def test_where_a_character_may_be(edits: list[Edit], at: int) -> None:
    after = apply_edits(TEXT, edits)
    first, last = OffsetMap(edits).spread(at)
    if any(edit.start <= at < edit.end for edit in edits):
        touching = [edit for edit in edits if edit.start <= at <= edit.end]
        assert last - first == sum(len(edit.text) for edit in touching)
    else:
        assert first == last
        assert after[first] == TEXT[at]
