"""Find the cheapest path through the stages of a chain under a memory budget.

Dynamic programming over the stages. A label is a path to a stage, with its FLOPs and residuals; a
label that another dominates is dropped. Labels are sorted into buckets of residuals, a 500th of the
budget wide, and each bucket keeps its cheapest label; the label with the least residuals stays, so
that a feasible budget is met.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from ..measure.worker.records import WRAPPED, Chain
from .chain import GROUP, Arc, Place, occurrences

BUCKETS = 500
# Labels that are extended from a stage, the cheapest first.
_MOST_LABELS = 400
# The relative precision of the lowest feasible budget.
_CLOSE = 0.01


class _Label(NamedTuple):
    """A path to a stage; a tuple, because there are very many."""

    cost: int
    saved: int
    before: _Label | None = None
    arc: Arc | None = None


class Solver:
    """Solves a chain for several budgets."""

    def __init__(self, chain: Chain, arcs: list[list[Arc]]) -> None:
        """Prepare to solve a chain, given the arcs that start at each stage."""
        self._arcs = arcs
        self._ties = Ties(chain, arcs)

    def solve(self, budget: int, buckets: int = BUCKETS) -> tuple[Arc, ...] | None:
        """Return the cheapest path, None if none is within the budget.

        Args:
            budget: the peak of live bytes.
            buckets: the number of buckets of residuals.
        """
        label = self._search(budget, buckets)
        return None if label is None else _path(label)

    @functools.cached_property
    def lowest(self) -> tuple[Arc, ...]:
        """A path whose peak is within a hundredth of the lowest."""
        highest = sum(max(arc.peak for arc in here) for here in self._arcs)
        found = self._search(highest, 1)
        assert found is not None
        low, high = 0, highest
        while high - low > max(_CLOSE * high, 1):
            middle = (low + high) // 2
            label = self._search(middle, 1)
            if label is None:
                low = middle
            else:
                found, high = label, middle
        return self.solve(high) or _path(found)

    def _search(self, budget: int, buckets: int) -> _Label | None:
        count = len(self._arcs)
        reached: list[dict[Open, list[_Label]]] = [{} for _ in range(count + 1)]
        reached[0][()] = [_Label(0, 0)]
        for start in range(count):
            thinned = {
                made: _thinned(labels, budget, buckets) for made, labels in reached[start].items()
            }
            for made, labels in _fewest(thinned).items():
                for arc, after in self._ties.onward(made, start):
                    if arc.peak <= budget:
                        to = reached[arc.stop].setdefault(after, [])
                        _extend(to, labels, arc, budget)
            reached[start] = {}
        labels = [label for found in reached[count].values() for label in found]
        return min(labels, key=lambda label: (label.cost, label.saved), default=None)


def _extend(to: list[_Label], labels: Iterable[_Label], arc: Arc, budget: int) -> None:
    room, saved, flops = budget - arc.peak, arc.saved, arc.flops
    for label in labels:
        if label.saved > room:
            break  # labels are sorted by residuals
        to.append(_Label(label.cost + flops, label.saved + saved, label, arc))


def _thinned(labels: list[_Label], budget: int, buckets: int) -> list[_Label]:
    """Drop dominated labels; keep the cheapest of each bucket, and the one that saves least."""
    labels.sort(key=itemgetter(1, 0))
    front: list[_Label] = []
    last = -1
    width = max(budget / buckets, 1)
    for label in labels:
        if front and label.cost >= front[-1].cost:
            continue
        bucket = int(label.saved / width)
        if bucket == last and len(front) > 1:
            front[-1] = label
        else:
            front.append(label)
        last = bucket
    return front


def _fewest(by_decision: dict[Open, list[_Label]]) -> dict[Open, list[_Label]]:
    """Return all labels, or the cheapest if there are too many."""
    every = [(label, made) for made, labels in by_decision.items() for label in labels]
    if len(every) <= _MOST_LABELS:
        return by_decision
    # Keep the label with the least residuals, so that a feasible budget is met.
    least = min(every, key=lambda one: one[0].saved)
    cheapest = sorted(every, key=lambda one: one[0].cost)[:_MOST_LABELS]
    found: dict[Open, list[_Label]] = {least[1]: [least[0]]}
    for label, made in cheapest:
        if label is not least[0]:
            found.setdefault(made, []).append(label)
    for labels in found.values():
        labels.sort(key=lambda label: label.saved)
    return found


def _path(label: _Label) -> tuple[Arc, ...]:
    path: list[Arc] = []
    current: _Label | None = label
    while current is not None and current.arc is not None:
        path.append(current.arc)
        current = current.before
    return tuple(reversed(path))


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
    """Finds the arcs that agree with earlier decisions.

    Stages that run the same line, as in a loop, share one decision. A group that starts at a line
    covers the same lines each time; the last one of a loop may be shorter.
    """

    def __init__(self, chain: Chain, arcs: Sequence[Sequence[Arc]]) -> None:
        """Tie the lines of a chain."""
        self._links, self._arcs = chain, arcs
        self._places = occurrences(chain)
        self._is_tied = any(len(places) > 1 for places in self._places.values())
        self._known: dict[tuple[Open, int], list[tuple[Arc, Open]]] = {}

    def onward(self, made: Open, start: int) -> list[tuple[Arc, Open]]:
        """Return the arcs that agree with earlier decisions, each with the decisions after it."""
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
