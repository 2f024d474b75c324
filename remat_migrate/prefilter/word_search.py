"""Searching bytes for many words at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ahocorasick_rs import BytesAhoCorasick

# Where each word is that some bytes contain.
Places = Mapping[bytes, Sequence[int]]


class WordSearch:
    """Finds words in the bytes of files.

    Attributes:
        words: the words, none of them empty.
    """

    def __init__(self, words: Iterable[bytes]) -> None:
        self.words = frozenset(words)
        self._sorted = sorted(self.words)
        self._search = BytesAhoCorasick(self._sorted)

    def places(self, data: bytes) -> Places:
        """Return the words that some bytes contain, and where."""
        found: dict[bytes, list[int]] = {}
        for number, start, _ in self._search.find_matches_as_indexes(data, overlapping=True):
            found.setdefault(self._sorted[number], []).append(start)
        return found
