"""Count how often each checkpoint is applied when a program runs once.

The program is traced with `COUNT`: each checkpoint is left out, and each application gives its
input arrays names of their own. Differentiation keeps exactly one copy of a name, on the primal
value, wherever the checkpoint is. A name therefore occurs as often as the checkpoint is applied,
unless JAX moves the name of a loop-invariant value out of the loop. The most frequent name of each
application is used, because some arguments may be loop-invariant, but the carry is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from . import interception
from .interception import MARK, Site
from .internals import internals


class _Mark(NamedTuple):
    """The number of the site, of the application, and of the array that a name marks."""

    site: int
    application: int
    leaf: int


_Counts = dict[_Mark, int]


def applications(jaxpr: Any) -> dict[Site, int]:
    """Return how often each site is applied when a jaxpr that was traced with `COUNT` runs once.

    Counts the branch that applies a site most often, and the body of a `while` loop once. Does not
    see checkpoints without array inputs.
    """
    sites = interception.sites()
    counts = _site_counts(_mark_counts(internals().opened(jaxpr), {}))
    return {sites[number]: times for number, times in counts.items()}


def mark_of(equation: Any) -> _Mark | None:
    """Return what an equation marks, if anything."""
    if internals().name(equation) == "name":
        name = internals().label(equation)
        if name.startswith(MARK):
            return _Mark(*map(int, name[len(MARK) :].split("_")))
    return None


def _mark_counts(jaxpr: Any, known: dict[int, _Counts]) -> _Counts:
    """Return how often each mark in a jaxpr is evaluated; `known` caches jaxprs by `id`."""
    if id(jaxpr) in known:
        return known[id(jaxpr)]
    found: _Counts = {}
    for equation in jaxpr.eqns:
        mark = mark_of(equation)
        if mark is not None:
            found[mark] = found.get(mark, 0) + 1
            continue
        how, inner, times = internals().inner(equation)
        bodies = [_mark_counts(internals().opened(body), known) for body in inner]
        if how == "branches":
            bodies = _largest_branches(bodies)
        for body in bodies:
            for mark, count in body.items():
                found[mark] = found.get(mark, 0) + times * count
    known[id(jaxpr)] = found
    return found


def _largest_branches(branches: Iterable[_Counts]) -> list[_Counts]:
    """Return the counts of each site in the branch that applies it most often."""
    most: dict[int, int] = {}
    chosen: dict[int, _Counts] = {}
    for branch in branches:
        for site, times in _site_counts(branch).items():
            if times > most.get(site, 0):
                most[site] = times
                chosen[site] = {mark: n for mark, n in branch.items() if mark.site == site}
    return list(chosen.values())


def _site_counts(counts: _Counts) -> dict[int, int]:
    """Return how often each site is applied, by number."""
    most: dict[tuple[int, int], int] = {}
    for mark, times in counts.items():
        key = mark.site, mark.application
        most[key] = max(times, most.get(key, 0))
    found: dict[int, int] = {}
    for (site, _), times in most.items():
        found[site] = found.get(site, 0) + times
    return found
