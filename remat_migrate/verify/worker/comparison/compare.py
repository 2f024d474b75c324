"""Compare what a unit computed before and after. Needs only numpy."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Set

from ..failures import headline
from .entries import Leaves, Result, allowed_differences, structure_difference

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
    return _Sides(old, new, tolerances or {}).compare(ran)


class _Sides:
    """The results of both sides, of which the old ones did not fail."""

    def __init__(self, old: Result, new: Result, tolerances: Dict[str, float]) -> None:
        self.old = old
        self.new = new
        self.allowed = allowed_differences(tolerances)
        self.max_abs = self.max_rel = 0.0

    def compare(self, ran: List[str]) -> Comparison:
        """Return the verdict on these modes."""
        for mode in ran:
            found = self._mode(mode)
            if found:
                return found
        # Gradients of nothing are zero.
        values = [mode for mode in ran if mode.endswith("eager")]
        every = [leaf for mode in values for leaf in self.old.modes[mode]["leaves"]]
        return _equal(every, self.max_abs, self.max_rel)

    def _mode(self, mode: str) -> Optional[Comparison]:
        """Return the verdict if a mode decides it."""
        old, new, where = self.old.modes[mode], self.new.modes.get(mode), _where(mode)
        if new is None or "error" in new:
            error = (new or next(iter(self.new.modes.values())))["error"]
            return Comparison(FAILS_AFTER, detail=headline(error) + where, failure=error)
        reason = structure_difference(old, new)
        if reason and _only_functions_differ(old, new):
            # A method may be in the place of a function; they are called for themselves.
            detail = "the functions that it holds are others, and nothing calls them"
            return Comparison(NOT_EXERCISED, detail=detail)
        if reason:
            return Comparison(DIFFERS, detail=reason + where)
        leaves = Leaves(self.old, self.new, mode, self.allowed)
        self.max_abs = max(self.max_abs, leaves.max_abs)
        self.max_rel = max(self.max_rel, leaves.max_rel)
        if not leaves.reason and mode.endswith("eager") and leaves.are_nan:
            detail = "all its values are NaN"
            return Comparison(NOT_EXERCISED, detail=detail, only_numbers_differ=True)
        if not leaves.reason:
            return None
        apart = (self.max_abs, self.max_rel, leaves.reason + where)
        return Comparison(DIFFERS, *apart, only_numbers_differ=True)


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


def _equal(leaves: List[Dict[str, Any]], max_abs: float, max_rel: float) -> Comparison:
    """Return the verdict where nothing differs, which depends on what the result holds."""
    if not leaves:
        return Comparison(EQUAL, max_abs, max_rel, "it returns nothing", returns_nothing=True)
    if all("function" in leaf for leaf in leaves):
        return Comparison(
            NOT_EXERCISED, detail="nothing calls the functions or classes that it returns"
        )
    return Comparison(EQUAL, max_abs, max_rel)


def _where(mode: str) -> str:
    label, _, kind = mode.rpartition(" ")
    return _WHERE[kind] + (" of %s" % label if label else "")
