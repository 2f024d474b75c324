"""Which alternative values of the inputs to try together: each value once, then each pair."""

from __future__ import annotations

import itertools
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from ..lookup import attribute
from .candidates import OTHER
from .node import ABSENT, ARRAY, GUESS, LIST, VALUE, Choice, Node
from .search import Snapshot

Pin = Tuple[int, Choice]
Pins = Tuple[Pin, ...]

# How many values are changed together where there are too many for a case each.
_MOST_TOGETHER = 4

_Value = Tuple[int, Any]  # the number of a node, and the key of its choice


class Combinations:
    """The values that are worth a case, and what the cases so far have covered."""

    def __init__(self, base: Snapshot, asked: Sequence[Pins] = ()) -> None:
        """`asked` are values to try first, as they are."""
        self._base = base
        self._asked = list(asked)
        self._flips: List[Pin] = []
        self._known: Set[_Value] = set()
        self._waiting: List[Pins] = []
        self._tried: Set[Any] = {frozenset()}
        self._covered: Set[Any] = set()

    def note(self, nodes: Sequence[Node]) -> None:
        """Queue the alternative values that the last pass found; those of floats together."""
        fresh: List[Pin] = []
        for node in nodes:
            held = self._held(node.number)
            for choice in node.alternatives:
                mark = (node.number, choice.key())
                if mark not in self._known and (held is None or held.key() != choice.key()):
                    fresh.append((node.number, choice))
                self._known.add(mark)
        # Arguments first: there may be many other values of settings.
        inside = {node.number for node in nodes if node.parent is not None}
        fresh.sort(key=lambda pin: pin[0] in inside)
        self._flips += fresh
        floats = {pin[0]: pin for pin in reversed(fresh) if type(pin[1].value) is float}
        together = tuple(floats.values())[::-1]
        self._waiting += [(pin,) for pin in fresh if pin not in together]
        self._waiting += [together] if together else []

    def next(self, room: int) -> Optional[Pins]:
        """Return the values for another case, None if all are covered; `room`: for how many."""
        while self._asked:
            if self._is_new(pins := self._asked.pop(0)):
                return pins
        while self._waiting:
            pins = self._waiting.pop(0)
            while len(self._waiting) >= room and self._waiting and len(pins) < _MOST_TOGETHER:
                joined = next((p for p in self._waiting if _fit(pins, p)), None)
                if joined is None:
                    break
                self._waiting.remove(joined)
                pins = pins + joined
            if self._is_new(pins):
                return pins
        return self._row()

    def keep(self, nodes: Sequence[Node]) -> None:
        """Note the values that a case has covered."""
        values = [(n.number, n.choice.key()) for n in nodes]
        flippable = {number for number, _ in self._flips}
        values = [value for value in values if value[0] in flippable]
        self._covered |= {frozenset(pair) for pair in itertools.combinations(values, 2)}

    def reject(self, pins: Pins) -> None:
        """Try values one by one that do not work together."""
        if len(pins) > 1:
            self._waiting += [(pin,) for pin in pins]
        self._covered |= {
            frozenset((number, choice.key()) for number, choice in pair)
            for pair in itertools.combinations(pins, 2)
        }

    def _held(self, number: int) -> Optional[Choice]:
        held: Optional[Choice] = self._base[number][0] if number in self._base else None
        return held

    def _is_new(self, pins: Pins) -> bool:
        mark = frozenset((number, choice.key()) for number, choice in pins)
        if mark in self._tried:
            return False
        self._tried.add(mark)
        return True

    def _row(self) -> Optional[Pins]:
        """Return values of all flags, options, rates, and optional arrays that cover most pairs."""
        options: Dict[int, List[Choice]] = {}
        for number, choice in self._flips:
            held = self._held(number)
            if held is not None and held.kind == VALUE and choice.kind in (VALUE, GUESS, ARRAY):
                options.setdefault(number, [held]).append(choice)
        for left, right in itertools.combinations(options, 2):
            pairs = itertools.product(enumerate(options[left]), enumerate(options[right]))
            for (i, first), (j, second) in pairs:
                pair = frozenset(((left, first.key()), (right, second.key())))
                if pair in self._covered:
                    continue
                self._covered.add(pair)
                # All others change, too: after a case for each value, one such row often does.
                row = {n: choices[max(i, j) % len(choices)] for n, choices in options.items()}
                row.update({left: first, right: second})
                pins = tuple(pin for pin in row.items() if pin[1] is not options[pin[0]][0])
                if self._is_new(pins):
                    return pins
        return None


def _fit(pins: Pins, others: Pins) -> bool:
    """Return whether values can be tried together: plain ones, of different inputs."""
    numbers = [number for number, _ in pins + others]
    plain = all(choice.kind == VALUE for _, choice in pins + others)
    return plain and len(set(numbers)) == len(numbers)


def are_made_up(pins: Pins) -> bool:
    """Return whether a value is a string that no code knows."""
    values = [choice.value for _, choice in pins if choice.kind == VALUE]
    return any(type(value) is str and value == OTHER for value in values)


def described(node: Node, choice: Choice) -> str:
    """Return what a choice for a node is."""
    return "{}={}".format(node.label, _shown(choice))


def _shown(choice: Choice) -> str:
    if choice.kind == VALUE:
        return attribute(choice.value, "__name__") or repr(choice.value)
    if choice.kind == ABSENT:
        return "absent"
    if choice.kind == LIST:
        return "{} values".format(choice.value)
    return "given"
