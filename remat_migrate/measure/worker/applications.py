"""Count how often each checkpoint is applied when a program runs once.

The program is traced with `COUNT`: each checkpoint is left out, and the first array that it returns
gets a name. Differentiation keeps exactly one copy of a name, on the primal value, wherever the
checkpoint is. So a name occurs as often as the checkpoint is applied.
"""

from __future__ import annotations

from typing import Any

from . import interception
from .interception import MARK, Site
from .internals import internals


def applications(jaxpr: Any) -> dict[Site, int]:
    """Return how often each site is applied when a jaxpr that was traced with `COUNT` runs once.

    Counts the branch that applies a site most often, and the body of a `while` loop once. Does not
    see checkpoints that return no array.
    """
    sites = interception.sites()
    counts = _counts(internals().opened(jaxpr), {})
    return {sites[number]: times for number, times in counts.items()}


def marked_site(equation: Any) -> int | None:
    """Return the number of the site whose result an equation marks, if it marks one."""
    if internals().name(equation) == "name":
        name = internals().label(equation)
        if name.startswith(MARK):
            return int(name[len(MARK) :])
    return None


def _counts(jaxpr: Any, known: dict[int, dict[int, int]]) -> dict[int, int]:
    """Return how often each site is applied, by number; `known` caches jaxprs by `id`."""
    if id(jaxpr) in known:
        return known[id(jaxpr)]
    found: dict[int, int] = {}
    for equation in jaxpr.eqns:
        site = marked_site(equation)
        if site is not None:
            found[site] = found.get(site, 0) + 1
        how, inner, times = internals().inner(equation)
        bodies = [_counts(internals().opened(body), known) for body in inner]
        joined = max if how == "branches" else sum
        for number in {number for body in bodies for number in body}:
            again = joined(body.get(number, 0) for body in bodies)
            found[number] = found.get(number, 0) + times * again
    known[id(jaxpr)] = found
    return found
