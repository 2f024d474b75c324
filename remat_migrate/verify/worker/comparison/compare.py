"""Compare what a unit computed before and after. Needs only numpy."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Set

import numpy as np

from ..failures import headline
from .entries import Result, allowed_differences, apart, arrays_of, structure_difference

EQUAL, DIFFERS, FAILS_AFTER, FAILS_BEFORE = "equal", "differs", "fails-after", "fails-before"
NOT_EXERCISED = "not-exercised"

_WHERE = {
    "eager": "",
    "gradient": " in the gradient",
    "jit": " under jax.jit",
}


class Comparison(NamedTuple):
    """The verdict on one case.

    Attributes:
        verdict: equal, differs, fails-after, fails-before, or not-exercised where there are only
            functions, which nothing has called.
        max_abs: the largest absolute difference.
        max_rel: the largest difference relative to the largest entry of its array.
        detail: where it differs, or what failed.
        failure: of what failed, see failures.describe.
        only_numbers_differ: whether only the values of arrays differ, or were not computed.
        is_abstract: whether they cannot be computed, because the arguments are abstract.
        returns_nothing: whether there are no results to compare.
    """

    verdict: str
    max_abs: Optional[float] = None
    max_rel: Optional[float] = None
    detail: str = ""
    failure: Optional[Dict[str, Any]] = None
    only_numbers_differ: bool = False
    is_abstract: bool = False
    returns_nothing: bool = False


def compare(before: str, after: str, tolerances: Optional[Dict[str, float]] = None) -> Comparison:
    """Compare two result folders that `evaluate` wrote.

    Args:
        before: the old code's results.
        after: the new code's results.
        tolerances: the user's, by dtype.
    """
    old, new = Result(before), Result(after)
    ran = [mode for mode in old.modes if "error" not in old.modes[mode]]
    if old.modes and not ran:
        error = next(iter(old.modes.values()))["error"]
        return Comparison(FAILS_BEFORE, detail=headline(error), failure=error)
    for name, default in old.defaults.items():
        now = new.defaults.get(name, default)
        if now != default:
            detail = "the default of %s is %s, was %s" % (name, now, default)
            return Comparison(DIFFERS, detail=detail)
    if not old.modes:
        detail = "its arguments are abstract" if old.is_abstract else "nothing was computed"
        return Comparison(
            NOT_EXERCISED, detail=detail, only_numbers_differ=True, is_abstract=old.is_abstract
        )
    allowed = allowed_differences(tolerances or {})
    max_abs = max_rel = 0.0
    for mode in ran:
        found = _mode(old, new, mode, allowed)
        max_abs, max_rel = max(max_abs, found.max_abs or 0.0), max(max_rel, found.max_rel or 0.0)
        if found.verdict != EQUAL:
            return found
    # Gradients of nothing are zero.
    values = [old.modes[mode] for mode in ran if mode.endswith("eager")]
    leaves = [leaf for outcome in values for leaf in outcome["leaves"]]
    if not leaves:
        return Comparison(EQUAL, max_abs, max_rel, "it returns nothing", returns_nothing=True)
    if all("function" in leaf for leaf in leaves):
        detail = "nothing calls the functions or classes that it returns"
        return Comparison(NOT_EXERCISED, detail=detail)
    return Comparison(EQUAL, max_abs, max_rel)


def _mode(old: Result, new: Result, mode: str, allowed: Dict[str, float]) -> Comparison:
    """Return the verdict on one mode, which ran in the old code."""
    before, after = old.modes[mode], new.modes.get(mode)
    label, _, kind = mode.rpartition(" ")
    where = _WHERE[kind] + (" of %s" % label if label else "")
    if after is None or "error" in after:
        error = (after or next(iter(new.modes.values())))["error"]
        return Comparison(FAILS_AFTER, detail=headline(error) + where, failure=error)
    reason = structure_difference(before, after)
    if reason and _only_functions_differ(before, after):
        # A method may be in the place of a function; they are called for themselves.
        detail = "the functions that it holds are others, and nothing calls them"
        return Comparison(NOT_EXERCISED, detail=detail)
    if reason:
        return Comparison(DIFFERS, detail=reason + where)
    found = list(apart(old, new, mode, allowed))
    max_abs = max((one.absolute for one in found), default=0.0)
    max_rel = max((one.relative for one in found), default=0.0)
    if reason := next((one.said for one in found if one.said), ""):
        return Comparison(DIFFERS, max_abs, max_rel, reason + where, only_numbers_differ=True)
    arrays = [array for _, array in arrays_of(old, mode) if array.size]
    if kind == "eager" and arrays and all(np.isnan(array).all() for array in arrays):
        # That tells nothing: any other NaN is equal.
        detail = "all its values are NaN"
        return Comparison(NOT_EXERCISED, detail=detail, only_numbers_differ=True)
    return Comparison(EQUAL, max_abs, max_rel)


def _only_functions_differ(old: Dict[str, Any], new: Dict[str, Any]) -> bool:
    """Return whether two results hold the same but for which functions are where.

    A policy that is called by mistake is a bool, and that bool becomes a function.
    """
    first, second = (
        {leaf["path"] for leaf in outcome["leaves"] if "function" in leaf} for outcome in (old, new)
    )
    rest = [
        {"tree": "", "leaves": [one for one in each["leaves"] if not _is_in(one, first | second)]}
        for each in (old, new)
    ]
    paths = [[leaf["path"] for leaf in outcome["leaves"]] for outcome in rest]
    return paths[0] == paths[1] and first != second and not structure_difference(*rest)


def _is_in(leaf: Dict[str, Any], places: Set[str]) -> bool:
    """Return whether a leaf is a function, or a bool where one may be."""
    return "function" in leaf or (leaf.get("dtype") == "bool" and leaf["path"] in places)
