"""Tie the decisions for stages that run the same line, as in a loop: one decision for each line.

A group that starts at a line covers the same lines each time; the last one of a loop may be
shorter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..measure.worker.records import WRAPPED, Chain
from .chain import GROUP, Arc, Place, occurrences


class Decision(NamedTuple):
    """The decision for the stages of a line.

    Attributes:
        kind: as for `Arc`, or `covered` if a group that starts at another line covers them.
        policy: the policy of the checkpoint, or None.
        lines: the lines of a group.
    """

    kind: str
    policy: str | None = None
    lines: tuple[int, ...] = ()


COVERED = Decision("covered")

# The decisions for lines that recur.
Open = tuple[tuple[Place, Decision], ...]


class Ties:
    """Finds the arcs that agree with earlier decisions."""

    def __init__(self, chain: Chain, arcs: Sequence[Sequence[Arc]]) -> None:
        """Tie the lines of a chain."""
        self._links, self._arcs = chain, arcs
        self._places = occurrences(chain)
        self._is_tied = any(len(places) > 1 for places in self._places.values())
        self._known: dict[tuple[Open, int], list[tuple[Arc, Open]]] = {}

    def onward(self, made: Open, start: int) -> list[tuple[Arc, Open]]:
        """Return the arcs from a stage that agree with decisions, with the decisions after them."""
        if not self._is_tied:
            return [(arc, ()) for arc in self._arcs[start]]
        key = made, start
        if key not in self._known:
            self._known[key] = list(self._onward(dict(made), start))
        return self._known[key]

    def _onward(self, made: dict[Place, Decision], start: int) -> Iterator[tuple[Arc, Open]]:
        place = self._links[start].place
        for arc in self._arcs[start]:
            now = dict(made)
            if self._recurs(start):
                decision = now.setdefault(place, decision_of(arc))
                if decision_of(arc) != decision and not self._is_rest(decision, arc):
                    continue
            others = {
                self._links[number].place
                for number in range(start + 1, arc.stop)
                if self._recurs(number)
            }
            if all(now.setdefault(other, COVERED) == COVERED for other in others - {place}):
                yield (
                    arc,
                    tuple(sorted(one for one in now.items() if self._again(one[0], arc.stop))),
                )

    def _recurs(self, number: int) -> bool:
        link = self._links[number]
        return link.heavy and len(self._places[link.place]) > 1

    def _is_rest(self, decision: Decision, arc: Arc) -> bool:
        """Return whether an arc is a group that ends early because the loop ends."""
        length = len(arc.lines)
        if decision.kind != GROUP or arc.policy != decision.policy:
            return False
        if arc.lines != decision.lines[:length]:
            return False
        following = self._links[arc.stop].line if arc.stop < len(self._links) else None
        if length < len(decision.lines) and following == decision.lines[length]:
            return False
        is_kind = arc.kind == (GROUP if length > 1 else WRAPPED)
        return is_kind and not self._again(self._links[arc.start].place, arc.stop)

    def _again(self, place: Place, start: int) -> bool:
        """Return whether a line runs at a stage or after it."""
        places = self._places[place]
        return bisect_left(places, start) < len(places)


def decision_of(arc: Arc) -> Decision:
    """Return the decision of an arc for the line that it starts at."""
    return Decision(arc.kind, arc.policy, arc.lines if arc.kind == GROUP else ())
