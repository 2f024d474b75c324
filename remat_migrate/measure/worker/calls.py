"""Lines that call a checkpointed function without having it traced once more.

What is compiled, or is the body of a loop, is traced when it is first called. The lines of later
calls are those of the equations that hold the same jaxpr.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Set, Tuple

from .applications import marked_site
from .interception import Place, Site, is_library
from .internals import internals

_NOWHERE = Place("", 0)


def lines_of_calls(jaxpr: Any) -> Dict[Site, Set[Place]]:
    """For each site the lines that call it, in a jaxpr that was traced with `COUNT`."""
    found: Dict[Site, Set[Place]] = {}
    for site, place in _Walk().calls(internals().opened(jaxpr), _NOWHERE):
        found.setdefault(site, set()).add(place)
    return found


class _Walk:
    def __init__(self) -> None:
        # The line that had a jaxpr traced, by its `id`.
        self._first: Dict[int, Place] = {}
        self._seen: Set[Tuple[int, Place]] = set()

    def calls(self, jaxpr: Any, caller: Place) -> Iterator[Tuple[Site, Place]]:
        """The lines that call what is marked in a jaxpr which the line `caller` runs."""
        if (id(jaxpr), caller) in self._seen:
            return
        self._seen.add((id(jaxpr), caller))
        first = self._first.setdefault(id(jaxpr), caller)
        for equation in jaxpr.eqns:
            site = marked_site(equation)
            _, bodies, _ = internals().inner(equation)
            if site is None and not bodies:
                continue
            place = _place(equation)
            if place in (_NOWHERE, first):
                # JAX itself calls it; versions differ in whether they tell who called JAX.
                place = caller
            if site is not None:
                yield site, place
            for body in map(internals().opened, bodies):
                yield from self.calls(body, place)


def _place(equation: Any) -> Place:
    """The innermost line of the user's that an equation comes from."""
    for path, _, line in internals().places(equation):
        if not is_library(path):
            return Place(path, line)
    return _NOWHERE
