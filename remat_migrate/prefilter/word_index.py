"""Which files contain a word, from one pass over all of them."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable

_WORD = re.compile(rb"[\w\x80-\xff]+")
# Longer ones are data, such as images in notebooks, and no names.
_LONGEST = 300


class WordIndex:
    """The words of numbered files."""

    def __init__(self, files: Iterable[tuple[int, bytes]]) -> None:
        self._files: dict[bytes, array[int]] = {}
        for number, data in files:
            for word in set(_WORD.findall(data)):
                if len(word) <= _LONGEST:
                    self._files.setdefault(word, array("L")).append(number)
        self._words = b"\n".join(self._files) + b"\n"

    def find(self, needle: bytes) -> list[int] | None:
        """Return the files with a word that contains `needle`; None if it is no part of a word."""
        if not _WORD.fullmatch(needle):
            return None
        found: set[int] = set()
        at = self._words.find(needle)
        while at >= 0:
            start, end = self._words.rfind(b"\n", 0, at) + 1, self._words.index(b"\n", at)
            found.update(self._files[self._words[start:end]])
            at = self._words.find(needle, end)
        return sorted(found)
