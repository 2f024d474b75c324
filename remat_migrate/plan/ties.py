"""One line of source, one decision: what a loop runs many times it runs in the same way.

All times, or all but the last: the last stage needs no checkpoint where nothing is kept after it. A
group that a line begins covers the same lines each time; at the end of a loop it may be shorter.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from .chain import GROUP, PLAIN, Arc, Chain, occurrences


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of the stages of a line.

    Attributes:
        kind: as of an arc; `covered` where a group that another line begins covers them.
        policy: the policy of the checkpoint.
        lines: the lines of a group.
        but_last: whether the last one is left without a checkpoint.
    """

    kind: str
    policy: str | None = None
    lines: tuple[int, ...] = ()
    but_last: bool = False


COVERED = Decision("covered")

# The decisions about lines that come again, each line once, in their order.
Open = tuple[tuple[int, Decision], ...]


class Ties:
    """Which arcs may follow decisions that have been made."""

    def __init__(self, chain: Chain) -> None:
        self._links = chain.links
        self._places = occurrences(chain)
        self.is_tied = any(len(places) > 1 for places in self._places.values())

    def after(self, made: Open, arc: Arc) -> list[Open]:
        """The decisions after an arc, more than one where it leaves one open; none if it may not
        follow those that were made."""
        if not self.is_tied:
            return [()]
        known = dict(made)
        line = self._links[arc.start].line
        if not self._links[arc.start].heavy or len(self._places[line]) == 1:
            chosen: list[Decision | None] = [None]
        elif line in known:
            if not self.agrees(known[line], arc):
                return []
            chosen = [known[line]]
        else:
            lines = arc.lines if arc.kind == GROUP else ()
            first = Decision(arc.kind, arc.policy, lines)
            chosen = [first]
            if arc.kind != PLAIN and self._comes_again(line, arc.start + len(arc.lines)):
                chosen.append(Decision(arc.kind, arc.policy, lines, True))
        covered = {
            link.line
            for link in self._links[arc.start + 1 : arc.stop]
            if link.heavy and link.line != line and len(self._places[link.line]) > 1
        }
        if any(known.get(other, COVERED) != COVERED for other in covered):
            return []
        known.update(dict.fromkeys(covered, COVERED))
        found = []
        for decision in chosen:
            now = known if decision is None else {**known, line: decision}
            left = ((each, d) for each, d in now.items() if self._comes_again(each, arc.stop))
            found.append(tuple(sorted(left, key=lambda item: item[0])))
        return found

    def agrees(self, decision: Decision, arc: Arc) -> bool:
        """Whether an arc is what was decided for its line."""
        line = self._links[arc.start].line
        if decision.kind == "covered":
            # What is left after all groups but the last.
            return arc.kind == PLAIN and not self._comes_again(line, arc.stop)
        length = max(len(decision.lines), 1)
        if decision.but_last and not self._comes_again(line, arc.start + length):
            return arc.kind == PLAIN
        if decision.kind != GROUP:
            return (arc.kind, arc.policy) == (decision.kind, decision.policy)
        if arc.lines == decision.lines:
            return (arc.kind, arc.policy) == (GROUP, decision.policy)
        return self._is_rest(decision, arc)

    def _is_rest(self, decision: Decision, arc: Arc) -> bool:
        """Whether an arc is a group that ends early, with the loop."""
        line = self._links[arc.start].line
        length = len(arc.lines)
        if arc.lines != decision.lines[:length] or self._comes_again(line, arc.stop):
            return False
        following = self._links[arc.stop].line if arc.stop < len(self._links) else None
        if length < len(decision.lines) and following == decision.lines[length]:
            return False
        kinds = ("group",) if length > 1 else ("wrapped",)
        return arc.kind in kinds and arc.policy == decision.policy

    def _comes_again(self, line: int, place: int) -> bool:
        places = self._places[line]
        return bisect_left(places, place) < len(places)
