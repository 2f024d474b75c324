"""Find the lines that call a checkpointed function, including calls that are not traced again.

JAX traces compiled functions and loop bodies on their first call only. Later calls are equations
that hold the same jaxpr.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .applications import marked_site
from .interception import NOWHERE, Location, Site, is_library
from .internals import internals


def calling_lines(jaxpr: Any) -> dict[Site, set[Location]]:
    """Return the lines that call each site, in a jaxpr that was traced with `COUNT`."""
    found: dict[Site, set[Location]] = {}
    for site, location in _Walk().calls(internals().opened(jaxpr), NOWHERE):
        found.setdefault(site, set()).add(location)
    return found


class _Walk:
    def __init__(self) -> None:
        # The line that first called a jaxpr, by the `id` of the jaxpr.
        self._first: dict[int, Location] = {}
        self._seen: set[tuple[int, Location]] = set()

    def calls(self, jaxpr: Any, caller: Location) -> Iterator[tuple[Site, Location]]:
        """Yield the sites in a jaxpr that the line `caller` runs, each with its calling line."""
        if (id(jaxpr), caller) in self._seen:
            return
        self._seen.add((id(jaxpr), caller))
        first = self._first.setdefault(id(jaxpr), caller)
        for equation in jaxpr.eqns:
            site = marked_site(equation)
            _, bodies, _ = internals().inner(equation)
            if site is None and not bodies:
                continue
            location = _user_line(equation)
            if location in (NOWHERE, first):
                # JAX itself makes the call; only some versions record who called JAX.
                location = caller
            if site is not None:
                yield site, location
            for body in map(internals().opened, bodies):
                yield from self.calls(body, location)


def _user_line(equation: Any) -> Location:
    """Return the innermost line of the user's code that an equation comes from."""
    for path, _, line in internals().places(equation):
        if not is_library(path):
            return Location(path, line)
    return NOWHERE
