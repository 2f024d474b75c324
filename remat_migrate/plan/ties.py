"""Tie the decisions for stages that run the same line, as in a loop: one decision for each line.

The last iteration may go without a checkpoint, because nothing is saved after it. A group that
starts at a line covers the same lines each time; the last one of a loop may be shorter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..measure.worker.records import PLAIN, WRAPPED, Chain
from .chain import GROUP, Arc, Place, Writable, occurrences


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision for the stages of a line.

    Attributes:
        kind: as for `Arc`; `covered` if a group that starts at another line covers them, `left`
            if the remaining ones have no checkpoint.
        policy: the policy of the checkpoint, or None.
        lines: the lines of a group.
    """

    kind: str
    policy: str | None = None
    lines: tuple[int, ...] = ()


COVERED, LEFT = Decision("covered"), Decision("left")

# The decisions for lines that recur, as pairs of line and number of the decision.
Open = tuple[tuple[Place, int], ...]


class Ties:
    """Finds the arcs that agree with earlier decisions."""

    def __init__(
        self, chain: Chain, arcs: Sequence[Sequence[Arc]], source: Writable | None = None
    ) -> None:
        """Tie the lines of a chain, so that the decisions can be written into a `source`."""
        self._source = source
        self._links, self._arcs = chain, arcs
        self._places = occurrences(chain)
        self._is_tied = any(len(places) > 1 for places in self._places.values())
        self._numbers: dict[Decision, int] = {COVERED: 0, LEFT: 1}
        self._decisions = [COVERED, LEFT]
        self._by_decision = [{decision_of(arc): arc for arc in here} for here in arcs]
        self._known: dict[tuple[Open, int], list[tuple[Arc, Open]]] = {}

    def onward(self, made: Open, start: int) -> list[tuple[Arc, Open]]:
        """Return the arcs from a stage that agree with decisions, with the decisions after them."""
        if not self._is_tied:
            return [(arc, ()) for arc in self._arcs[start]]
        key = made, start
        if key not in self._known:
            self._known[key] = list(self._onward(dict(made), start))
        return self._known[key]

    def _onward(self, made: dict[Place, int], start: int) -> Iterator[tuple[Arc, Open]]:
        link = self._links[start]
        if not link.heavy or len(self._places[link.place]) == 1:
            for arc in self._arcs[start]:
                yield from self._after(made, arc, None)
        elif link.place not in made:
            for arc in self._arcs[start]:
                yield from self._after(made, arc, decision_of(arc))
        else:
            decision = self._decisions[made[link.place]]
            for arc in self._agreeing(decision, start):
                is_left = arc.kind == PLAIN and decision.kind not in (PLAIN, COVERED.kind)
                yield from self._after(made, arc, LEFT if is_left else decision)

    def _after(
        self, made: dict[Place, int], arc: Arc, decision: Decision | None
    ) -> Iterator[tuple[Arc, Open]]:
        place = self._links[arc.start].place
        now = dict(made)
        for link in self._links[arc.start + 1 : arc.stop]:
            if link.heavy and link.place != place and len(self._places[link.place]) > 1:
                if now.setdefault(link.place, 0) != 0:
                    return  # another decision was made for it
        if decision is not None:
            now[place] = self._number(decision)
        yield arc, tuple(sorted(item for item in now.items() if self._again(item[0], arc.stop)))

    def _number(self, decision: Decision) -> int:
        if decision not in self._numbers:
            self._numbers[decision] = len(self._decisions)
            self._decisions.append(decision)
        return self._numbers[decision]

    def _agreeing(self, decision: Decision, start: int) -> list[Arc]:
        exact = self._by_decision[start].get(decision)
        if exact is not None and self._again(self._links[start].place, exact.stop):
            return [exact]  # the common case
        return [arc for arc in self._arcs[start] if self.agrees(decision, arc)]

    def agrees(self, decision: Decision, arc: Arc) -> bool:
        """Return whether an arc agrees with the decision for the line that it starts at."""
        place = self._links[arc.start].place
        if decision == LEFT:
            return arc.kind == PLAIN
        if decision == COVERED:
            # The stages that the last, shorter group does not cover.
            return arc.kind == PLAIN and not self._again(place, arc.stop)
        if decision_of(arc) == decision:
            return True
        if arc.kind == PLAIN:
            if self._source is not None and not self._source.allows_all_but_last(
                place, decision.kind
            ):
                return False
            return not self._again(place, arc.start + max(len(decision.lines), 1))
        return decision.kind == GROUP and self._is_rest(decision, arc)

    def _is_rest(self, decision: Decision, arc: Arc) -> bool:
        """Return whether an arc is a group that ends early because the loop ends."""
        length = len(arc.lines)
        if arc.lines != decision.lines[:length] or arc.policy != decision.policy:
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
