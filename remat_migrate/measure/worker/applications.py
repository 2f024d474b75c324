"""How often each checkpoint is applied when a program runs once, loops counted.

The program is traced with `COUNT`: no checkpoint, and in its place the arrays that it is given get
names, others for each application. Differentiation keeps a name once, on the value itself, whether
the checkpoint stands in the function or in one whose gradient is taken inside. So a name is passed
as often as the checkpoint is applied, unless all that it depends on is the same for each round of a
loop, where it may be moved before the loop. Of the names of an application the one that is passed
most often counts: an argument may be such a constant of the loop, its carry is none.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, NamedTuple, Optional, Tuple

from . import interception
from .interception import MARK, Site
from .internals import internals


class _Mark(NamedTuple):
    """A name: of a site by its number, the application, and the array."""

    site: int
    application: int
    leaf: int


_Passed = Dict[_Mark, int]


def applications(jaxpr: Any) -> Dict[Site, int]:
    """How often each site is applied when a jaxpr that was traced with `COUNT` runs once.

    Of branches the one that applies it most counts, and the body of a `while` once. A checkpoint
    that is given no arrays is not seen.
    """
    found = _applied(_passed(internals().opened(jaxpr), {}))
    return {interception.numbered(number): times for number, times in found.items()}


def marked_site(equation: Any) -> Optional[Site]:
    """The site that an equation of such a jaxpr marks, if it does."""
    mark = _mark(equation)
    return None if mark is None else interception.numbered(mark.site)


def _mark(equation: Any) -> Optional[_Mark]:
    if internals().name(equation) == "name":
        name = internals().label(equation)
        if name.startswith(MARK):
            return _Mark(*map(int, name[len(MARK) :].split("_")))
    return None


def _passed(jaxpr: Any, known: Dict[int, _Passed]) -> _Passed:
    """How often each mark in a jaxpr is passed."""
    if id(jaxpr) in known:
        return known[id(jaxpr)]
    found: _Passed = {}
    for equation in jaxpr.eqns:
        mark = _mark(equation)
        if mark is not None:
            found[mark] = found.get(mark, 0) + 1
            continue
        how, inner, times = internals().inner(equation)
        bodies = [_passed(internals().opened(body), known) for body in inner]
        for mark, passed in _dearest(bodies) if how == "branches" else _all(bodies):
            found[mark] = found.get(mark, 0) + times * passed
    known[id(jaxpr)] = found
    return found


def _all(bodies: Iterable[_Passed]) -> Iterable[Tuple[_Mark, int]]:
    return [item for body in bodies for item in body.items()]


def _dearest(branches: Iterable[_Passed]) -> Iterable[Tuple[_Mark, int]]:
    """The marks of each site in the branch that applies it most."""
    most: Dict[int, int] = {}
    chosen: Dict[int, _Passed] = {}
    for branch in branches:
        for site, times in _applied(branch).items():
            if times > most.get(site, 0):
                most[site] = times
                chosen[site] = {mark: n for mark, n in branch.items() if mark.site == site}
    return _all(chosen.values())


def _applied(passed: _Passed) -> Dict[int, int]:
    """How often each site is applied, by its number."""
    most: Dict[Tuple[int, int], int] = {}
    for mark, times in passed.items():
        key = mark.site, mark.application
        most[key] = max(times, most.get(key, 0))
    found: Dict[int, int] = {}
    for (site, _), times in most.items():
        found[site] = found.get(site, 0) + times
    return found
