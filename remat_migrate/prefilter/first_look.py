"""The first look at the bytes of a Python file: most cannot matter, whatever the project holds."""

from __future__ import annotations

from collections.abc import Iterable

from .mentions import shows_name, stems_of
from .word_search import Places, WordSearch
from .words import CONCRETE, FLAGS, SCAN, SUPPRESSION, WORDS

# In comments that suppress findings.
_TOOL = b"remat-migrate"


class FirstLook:
    """Tells whether a file may matter.

    Attributes:
        names: the last parts of the names of the checkpoint family.
        words: further words that make a file matter, for rules that look for other things.
        search: the search for words of which each file that may matter has at least one.
    """

    def __init__(self, names: Iterable[str], words: Iterable[str]) -> None:
        self.names, self.words = tuple(sorted(names)), tuple(sorted(words))
        self._stems = stems_of(name.encode() for name in self.names)
        self._wanted = [word.encode() for word in self.words]
        self.search = WordSearch(
            (*WORDS, *self._wanted, *FLAGS, *self._stems, _TOOL, CONCRETE, SCAN)
        )

    def may_hold(self, data: bytes, places: Places) -> bool:
        """Return whether a file may apply a checkpoint, or hold what else rules look for.

        Args:
            data: its bytes.
            places: what the search found in it.
        """
        return (
            self.suppresses(data, places)
            or self.is_wanted(places)
            or FLAGS[1] in places
            or shows_name(data, self._stems, lambda stem, _: places.get(stem, ()))
        )

    def matters(self, data: bytes, places: Places) -> bool:
        """Return whether a file may hold a checkpoint, an option of one, or a scan.

        Another file may differentiate the scan.
        """
        return (
            CONCRETE in places or self.may_hold(data, places) or (SCAN in places and b"jax" in data)
        )

    def suppresses(self, data: bytes, places: Places) -> bool:
        """Return whether a file may have a comment that suppresses findings."""
        named = b"RMT" in places or _TOOL in places
        return named and SUPPRESSION.search(data) is not None

    def is_wanted(self, places: Places) -> bool:
        """Return whether a file has one of the further words."""
        return any(word in places for word in self._wanted)
