"""Compare what a unit computed before and after. Needs only numpy."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from ..failures import headline
from .entries import (
    UNCOMPILED,
    Leaves,
    Result,
    allowed_differences,
    structure_difference,
    take_policies,
)

EQUAL, DIFFERS, FAILS_AFTER, FAILS_BEFORE = "equal", "differs", "fails-after", "fails-before"
NOT_EXERCISED = "not-exercised"

_VARIES = "the old code's own results vary from run to run: "
_WHERE = {
    "eager": "",
    "gradient": " in the gradient",
    UNCOMPILED: " in the gradient without jax.jit",
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


def compare(
    before: str,
    after: str,
    tolerances: Optional[Dict[str, float]] = None,
    again: str = "",
) -> Comparison:
    """Compare two result folders that `evaluate` wrote.

    Args:
        before: the old code's results.
        after: the new code's results.
        tolerances: the user's, by dtype.
        again: the folder of another run of the old code, if there is one.
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
    sides = _Sides(old, new, tolerances or {}, Result(again) if again else None)
    return sides.compare(ran)


class _Sides:
    """The results of both sides, of which the old ones did not fail."""

    def __init__(
        self, old: Result, new: Result, tolerances: Dict[str, float], again: Optional[Result]
    ) -> None:
        self.old = old
        self.new = new
        self.again = again
        self.allowed = allowed_differences(tolerances)
        self.max_abs = self.max_rel = 0.0
        self.doubts: List[str] = []
        # Labels of modes that return policies.
        self.policies: Set[str] = set()

    def compare(self, ran: List[str]) -> Comparison:
        """Return the verdict on these modes."""
        for mode in ran:
            found = self._mode(mode)
            if found:
                return found
        if self.doubts:
            return self._verdict(NOT_EXERCISED, self.doubts[0])
        every = [leaf for mode in ran for leaf in self.old.modes[mode]["leaves"]]
        return _equal(every, self.max_abs, self.max_rel)

    def _verdict(self, verdict: str, detail: str) -> Comparison:
        """Return a verdict on numbers."""
        return Comparison(verdict, self.max_abs, self.max_rel, detail, only_numbers_differ=True)

    def _leaves(self, mode: str, where: str) -> Leaves:
        """Compare the arrays of a mode, and note doubts."""
        again = self.again if self.again and _is_alike(self.old, self.again, mode) else None
        found = Leaves(self.old, self.new, mode, self.allowed, again)
        self.max_abs = max(self.max_abs, found.max_abs)
        self.max_rel = max(self.max_rel, found.max_rel)
        if found.varies:
            self.doubts.append(_VARIES + found.varies + where)
        return found

    def _mode(self, mode: str) -> Optional[Comparison]:
        """Return the verdict if a mode decides it."""
        old, new, where = self.old.modes[mode], self.new.modes.get(mode), _where(mode)
        if new is None and mode.endswith(UNCOMPILED):
            return None  # the new code compiles it, too
        if new is None or "error" in new:
            error = (new or next(iter(self.new.modes.values())))["error"]
            return _failed(error, where, self.old.policy_errors)
        label = mode.rpartition(" ")[0]
        if label in self.policies and not mode.endswith("eager"):
            return None  # of what else is returned with them, the values suffice
        if take_policies(old, new):
            self.policies.add(label)
        reason = structure_difference(old, new)
        if reason:
            return self._other_structure(mode, reason + where)
        leaves = self._leaves(mode, where)
        return self._verdict(DIFFERS, leaves.reason + where) if leaves.reason else None

    def _other_structure(self, mode: str, reason: str) -> Comparison:
        if self.again and not _is_alike(self.old, self.again, mode):
            return Comparison(NOT_EXERCISED, detail=_VARIES + reason)
        if _only_functions_differ(self.old.modes[mode], self.new.modes[mode]):
            # A method may be in the place of a function; they are called for themselves.
            detail = "the functions that it holds are others, and nothing calls them"
            return Comparison(NOT_EXERCISED, detail=detail)
        return Comparison(DIFFERS, detail=reason)


def _is_alike(old: Result, again: Result, mode: str) -> bool:
    """Return whether another run of the old code has results of the same structure."""
    outcome = again.modes.get(mode, {})
    return "leaves" in outcome and not structure_difference(old.modes[mode], outcome)


def _only_functions_differ(old: Dict[str, Any], new: Dict[str, Any]) -> bool:
    """Return whether two results hold the same but for which functions are where."""
    values, places = zip(*map(_values_and_functions, (old, new)))
    paths = [[leaf["path"] for leaf in outcome["leaves"]] for outcome in values]
    alike = paths[0] == paths[1] and not structure_difference(*values)
    return alike and places[0] != places[1]


def _values_and_functions(outcome: Dict[str, Any]) -> Tuple[Dict[str, Any], List[str]]:
    leaves = [leaf for leaf in outcome["leaves"] if "function" not in leaf]
    places = [leaf["path"] for leaf in outcome["leaves"] if "function" in leaf]
    return {"tree": "", "leaves": leaves}, places


def _failed(error: Dict[str, Any], where: str, policy_errors: List[str]) -> Comparison:
    """Return the verdict where only the new code fails."""
    if headline(error) in policy_errors:
        detail = "JAX rejects its policy, before and after: " + headline(error)
        return Comparison(NOT_EXERCISED, detail=detail)
    return Comparison(FAILS_AFTER, detail=headline(error) + where, failure=error)


def _equal(leaves: List[Dict[str, Any]], max_abs: float, max_rel: float) -> Comparison:
    """Return the verdict where nothing differs, which depends on what the result holds."""
    if not leaves:
        return Comparison(EQUAL, max_abs, max_rel, "it returns nothing", returns_nothing=True)
    if all("function" in leaf and not leaf["policy"] for leaf in leaves):
        return Comparison(
            NOT_EXERCISED, detail="nothing calls the functions or classes that it returns"
        )
    return Comparison(EQUAL, max_abs, max_rel)


def _where(mode: str) -> str:
    label, _, kind = mode.rpartition(" ")
    return _WHERE[kind] + (" of %s" % label if label else "")
