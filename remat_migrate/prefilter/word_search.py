"""Searching bytes for many words at once, by vector instructions where the processor has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from .words import places_of

# Where each word is that some bytes contain.
Places = Mapping[bytes, Sequence[int]]


# More words than these are searched for in one pass over the bytes; of fewer, each that overlaps
# another one is searched for alone, and the others by vector instructions.
_FEW = 24


class WordSearch:
    """Finds words in the bytes of files.

    Attributes:
        words: the words, none of them empty.
    """

    def __init__(self, words: Iterable[bytes]) -> None:
        self.words = frozenset(words)
        self._at_once: list[bytes] = []
        self._overlapping = len(self.words) > _FEW
        # Words that contain one of the others, with its place in them.
        self._longer: dict[bytes, list[tuple[bytes, int]]] = {}
        # The library reports no match that overlaps another.
        self._alone: list[bytes] = []
        if self._overlapping:
            self._at_once = sorted(self.words)
            self._search = BytesAhoCorasick(self._at_once)
            return
        for word in sorted(self.words, key=lambda word: (len(word), word)):
            inner = next((one for one in self._at_once if one in word), None)
            if inner is not None:
                self._longer.setdefault(inner, []).append((word, word.index(inner)))
            elif any(_may_overlap(word, other) for other in (word, *self._at_once)):
                self._alone.append(word)
            else:
                self._at_once.append(word)
        # With this kind of match, it searches by vector instructions.
        self._search = BytesAhoCorasick(self._at_once, matchkind=MatchKind.LeftmostFirst)

    def places(self, data: bytes) -> Places:
        """Return the words that some bytes contain, and where."""
        found: dict[bytes, list[int]] = {}
        matches = self._search.find_matches_as_indexes(data, overlapping=self._overlapping)
        for number, start, _ in matches:
            found.setdefault(self._at_once[number], []).append(start)
        for inner in self._longer.keys() & found.keys() if found else ():
            for word, offset in self._longer[inner]:
                if places := [
                    start - offset
                    for start in found[inner]
                    if start >= offset and data.startswith(word, start - offset)
                ]:
                    found[word] = places
        for word in self._alone:
            if places := list(places_of(word, data)):
                found[word] = places
        return found


def _may_overlap(word: bytes, other: bytes) -> bool:
    """Return whether one word may begin within the other and end behind it."""
    return any(
        left.endswith(right[:length])
        for left, right in ((word, other), (other, word))
        for length in range(1, min(len(word), len(other)))
    )
