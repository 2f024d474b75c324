"""A search for many words finds each of them, wherever they overlap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remat_migrate.prefilter.word_search import WordSearch

_TEXTS = st.text("abc", max_size=12).map(str.encode)
_WORDS = st.sets(st.text("abc", min_size=1, max_size=4).map(str.encode), max_size=6)


@given(_WORDS, _TEXTS)
def test_places_of_words(words: set[bytes], data: bytes) -> None:
    expected = {
        word: [at for at in range(len(data)) if data.startswith(word, at)]
        for word in words
        if word in data
    }
    assert WordSearch(words).places(data) == expected
