"""Choices that a program is made with: drawn from a seed, written down, and made smaller."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Numbers from zero on, each below a limit; the smaller, the simpler what is made of it."""

    def __init__(self, seed: str, given: Sequence[int] | None = None) -> None:
        """With `given` choices these are taken; where there are no more, the simplest one."""
        self._random = random.Random(seed)
        self._given = given
        self.made: list[int] = []

    def count(self, least: int, most: int) -> int:
        """A number of a range, both ends included."""
        limit = max(1, most - least + 1)
        if self._given is None:
            choice = self._random.randrange(limit)
        else:
            place = len(self.made)
            choice = min(self._given[place], limit - 1) if place < len(self._given) else 0
        self.made.append(choice)
        return least + choice

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; simple ones come first."""
        return options[self.count(0, len(options) - 1)]

    def flip(self, percent: int = 50) -> bool:
        """True in so many of a hundred cases."""
        return self.count(0, 99) >= 100 - percent

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """Up to `most` of the options, none twice."""
        left, chosen = list(options), []
        for _ in range(min(self.count(0, most), len(left))):
            chosen.append(left.pop(self.count(0, len(left) - 1)))
        return chosen


def smallest(
    choices: Sequence[int], still: Callable[[Sequence[int]], list[int] | None], attempts: int
) -> list[int]:
    """Choices of which less, or less of each, would not do.

    Args:
        choices: those that do.
        still: tries some; gives those that were really made if these do, too, else None.
        attempts: how often to try at most.
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
    """Choices without some of them, or with some made simpler."""
    head, part, tail = choices[:place], choices[place : place + size], choices[place + size :]
    found = [head + tail]
    if any(part):
        found.append(head + [0] * len(part) + tail)
    if size == 1 and part[0] > 1:
        found += [[*head, part[0] // 2, *tail], [*head, part[0] - 1, *tail]]
    return found
