"""Answering questions about code that depend on each other, in cycles, too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Question = TypeVar("_Question", bound=Hashable)
_Answer = TypeVar("_Answer")

_MOST_ROUNDS = 20


class FixedPoint(Generic[_Question, _Answer]):
    """Computes the least answers that agree with each other, each a few times at most.

    What is computed while a cycle is open rests on assumptions about the questions around it. It is
    kept until the first question of the cycle is answered, and all of the cycle is computed again
    until every assumption holds.

    Attributes:
        guessed: whether the answer that is being computed rests on a question of which nothing is
            known yet. It is computed once more.
    """

    def __init__(
        self,
        compute: Callable[[_Question], _Answer],
        least: _Answer,
        essence: Callable[[_Answer], object] = lambda answer: answer,
    ) -> None:
        """Create a solver.

        Args:
            compute: answers a question, and asks this solver others.
            least: what is assumed of a question that is being answered.
            essence: what must be the same in two answers.
        """
        self._compute = compute
        self._least = least
        self._essence = essence
        self._known: dict[_Question, _Answer] = {}
        self._assumed: dict[_Question, _Answer] = {}
        # The questions that are being answered, by their depth.
        self._open: dict[_Question, int] = {}
        # Answers in open cycles, with the depth of the outermost question that each rests on, and
        # whether it rests on a guess.
        self._kept: dict[_Question, tuple[_Answer, int, bool]] = {}
        # The least depth of the open questions that were asked since the last one was opened.
        self._lowest = sys.maxsize
        self.guessed = False

    def forget(self) -> None:
        """Drop all answers, because what they rest on has changed."""
        self._known.clear()
        self._assumed.clear()

    def answer(self, question: _Question) -> _Answer:
        """Return the answer to a question."""
        known = self._known.get(question)
        if known is not None:  # No answer is None.
            return known
        if question in self._kept:
            found, lowest, guessed = self._kept[question]
            self._lowest = min(self._lowest, lowest)
            self.guessed |= guessed
            return found
        depth = self._open.get(question)
        if depth is not None:
            self._lowest = min(self._lowest, depth)
            self.guessed |= question not in self._assumed
            return self._assumed.get(question, self._least)
        outer, depth, first = self._lowest, len(self._open), len(self._kept)
        outer_guessed = self.guessed
        for rounds_left in reversed(range(_MOST_ROUNDS)):
            self._open[question], self._lowest, self.guessed = depth, sys.maxsize, False
            try:
                found = self._compute(question)
            except BaseException:
                self._close(question, first)
                raise
            lowest = self._lowest
            self._kept[question] = found, lowest, self.guessed
            if lowest < depth:  # The outermost question of the cycle goes on.
                del self._open[question]
                self._lowest = min(outer, lowest)
                self.guessed |= outer_guessed
                return found
            cycle = self._close(question, first)
            if lowest > depth or not rounds_left:
                break
            if not self.guessed and all(map(self._holds, cycle.items())):
                break
            self._assumed |= cycle
        self._known |= cycle
        self._lowest, self.guessed = outer, outer_guessed
        return found

    def _close(self, question: _Question, first: int) -> dict[_Question, _Answer]:
        """Return the answers that were kept while a question was open, and keep them no longer."""
        del self._open[question]
        kept = [self._kept.popitem() for _ in range(len(self._kept) - first)]
        return {one: answer for one, (answer, _, _) in kept}

    def _holds(self, answered: tuple[_Question, _Answer]) -> bool:
        question, answer = answered
        assumed = self._assumed.get(question, self._least)
        return self._essence(assumed) == self._essence(answer)
