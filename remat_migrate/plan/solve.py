"""Find the cheapest path through the stages of a chain under a memory budget.

Dynamic programming over the stages. A label is a path to a stage, with its FLOPs and residuals; a
label that another dominates is dropped. Labels are sorted into buckets of residuals, a 500th of the
budget wide, and each bucket keeps its cheapest label; the label with the least residuals stays, so
that a feasible budget is met.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

from ..measure.worker.records import Chain
from .chain import Arc
from .ties import Open, Ties

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
