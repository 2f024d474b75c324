"""The random choices that generate a program, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Draw from a seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def count(self, least: int, most: int) -> int:
        """Return an integer from an inclusive range."""
        return least + self._random.randrange(max(1, most - least + 1))

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options; simple ones come first."""
        return options[self.count(0, len(options) - 1)]

    def flip(self, percent: int = 50) -> bool:
        """Return True with a probability in percent."""
        return self.count(0, 99) >= 100 - percent

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """Return up to `most` distinct options."""
        left, chosen = list(options), []
        for _ in range(min(self.count(0, most), len(left))):
            chosen.append(left.pop(self.count(0, len(left) - 1)))
        return chosen
