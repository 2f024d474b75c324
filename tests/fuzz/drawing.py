"""The random choices that generate a program: drawn from a seed, recorded, and minimised."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Draw non-negative integers below a limit; smaller ones generate simpler programs."""

    def __init__(self, seed: str, given: Sequence[int] | None = None) -> None:
        """With `given` choices, use these and then the simplest ones."""
        self._random = random.Random(seed)
        self._given = given
        self.made: list[int] = []

    def count(self, least: int, most: int) -> int:
        """Return an integer from an inclusive range."""
        limit = max(1, most - least + 1)
        if self._given is None:
            choice = self._random.randrange(limit)
        else:
            place = len(self.made)
            choice = min(self._given[place], limit - 1) if place < len(self._given) else 0
        self.made.append(choice)
        return least + choice

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


def smallest(
    choices: Sequence[int], still: Callable[[Sequence[int]], list[int] | None], attempts: int
) -> list[int]:
    """Minimise choices.

    Args:
        choices: choices that fail.
        still: tries choices; returns those that were used if they still fail, else None.
        attempts: the maximum number of tries.
    """
    best = list(choices)
    size = max(1, len(best) // 2)
    while size and attempts > 0:
        place = 0
        improved = False
        while place < len(best) and attempts > 0:
            for smaller in _smaller(best, place, size):
                attempts -= 1
                made = still(smaller)
                if made is not None and (len(made), made) < (len(best), best):
                    best, improved = made, True
                    break
            else:
                place += size
        if not improved:
            size //= 2
    return best


def _smaller(choices: list[int], place: int, size: int) -> list[list[int]]:
    """Yield choices without some of them, or with simpler ones."""
    head, part, tail = choices[:place], choices[place : place + size], choices[place + size :]
    found = [head + tail]
    if any(part):
        found.append(head + [0] * len(part) + tail)
    if size == 1 and part[0] > 1:
        found += [[*head, part[0] // 2, *tail], [*head, part[0] - 1, *tail]]
    return found
