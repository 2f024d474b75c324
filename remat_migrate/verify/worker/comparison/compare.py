"""Compare what a unit computed before and after. Needs only numpy."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import numpy as np

from ..failures import headline
from .entries import (
    RETURNED,
    VARIES,
    Leaves,
    Noise,
    Result,
    allowed_differences,
    arrays_of,
    structure_difference,
    take_policies,
)

EQUAL, DIFFERS, FAILS_AFTER, FAILS_BEFORE = "equal", "differs", "fails-after", "fails-before"
NOT_EXERCISED = "not-exercised"

_WHERE = {"eager": "", "gradient": " in the gradient", "jit": " under jax.jit"}


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
        returned: whether what edited checkpoints return was compared.
    """

    verdict: str
    max_abs: Optional[float] = None
    max_rel: Optional[float] = None
    detail: str = ""
    failure: Optional[Dict[str, Any]] = None
    only_numbers_differ: bool = False
    is_abstract: bool = False
    returns_nothing: bool = False
    returned: bool = False


def compare(
    before: str,
    after: str,
    tolerances: Optional[Dict[str, float]] = None,
    variations: Optional[Dict[str, str]] = None,
    made: bool = False,
) -> Comparison:
    """Compare two result folders that `evaluate` wrote.

    Args:
        before: the old code's results.
        after: the new code's results.
        tolerances: the user's, by dtype.
        variations: folders with other results of the old code, by the names in `noise`.
        made: whether the inputs are made, so that others could be: where the old code's results
            are degenerate, they prove nothing.
    """
    old, new = Result(before), Result(after)
    noise = Noise(old, variations or {})
    allowed = allowed_differences(tolerances or {})
    ran = [m for m in old.modes if "error" not in old.modes[m] and not m.endswith(RETURNED)]
    if old.modes and not ran:
        error = next(iter(old.modes.values()))["error"]
        return Comparison(FAILS_BEFORE, detail=headline(error), failure=error)
    degenerate = _degenerate(old, ran) if made else ""
    if degenerate:
        return Comparison(NOT_EXERCISED, detail=degenerate, only_numbers_differ=True)
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
    max_abs = max_rel = 0.0
    doubts: List[str] = []
    policies: Set[str] = set()
    for mode in ran:
        where = _where(mode)
        outcome = new.modes.get(mode)
        if outcome is None and mode.endswith("gradient") and _has_values(new, mode):
            continue  # skipped because it is slow; the compiled gradient is there
        if outcome is None or "error" in outcome:
            error = outcome["error"] if outcome else next(iter(new.modes.values()))["error"]
            return _failed(error, where, old.policy_errors)
        had, has = _has_gradient(old.modes[mode]), _has_gradient(outcome)
        if mode.endswith("jit") and had != has:
            error = new.modes.get(mode[: -len("jit")] + "gradient", {}).get("error")
            if had and error:
                return _failed(error, " in the gradient" + where, old.policy_errors)
            if has:
                # Without a gradient in the old code, none is needed.
                outcome = new.modes[mode] = _values_alone(outcome, old.modes[mode])
        label = mode.rpartition(" ")[0]
        if label in policies and not mode.endswith("eager"):
            continue  # of what else is returned with them, the values suffice
        if take_policies(old.modes[mode], outcome):
            policies.add(label)
        reason = structure_difference(old.modes[mode], outcome)
        if reason:
            if noise.changes_structure(mode):
                return Comparison(NOT_EXERCISED, detail=VARIES + reason + where)
            if _only_functions_differ(old.modes[mode], outcome):
                # A method may be in the place of a function; they are called for themselves.
                detail = "the functions that it holds are others, and nothing calls them"
                return Comparison(NOT_EXERCISED, detail=detail)
            return Comparison(DIFFERS, detail=reason + where)
        found = Leaves(old, new, mode, allowed, noise, bool(doubts))
        max_abs, max_rel = max(max_abs, found.max_abs), max(max_rel, found.max_rel)
        if found.reason:
            return Comparison(
                DIFFERS, max_abs, max_rel, found.reason + where, only_numbers_differ=True
            )
        if found.doubt:
            doubts.append(found.doubt + where)
    returned = []
    for mode in _both_returned(old, new) if not new.is_moved else ():
        found = Leaves(old, new, mode, allowed, noise, bool(doubts))
        returned.append(mode)
        max_abs, max_rel = max(max_abs, found.max_abs), max(max_rel, found.max_rel)
        if found.reason:
            detail, is_sure = _returned_otherwise(old, new, mode, found)
            if is_sure and not doubts:
                return Comparison(DIFFERS, max_abs, max_rel, detail, only_numbers_differ=True)
            doubts.append(detail)
        elif found.doubt:
            doubts.append(found.doubt)
    if doubts:
        return Comparison(NOT_EXERCISED, max_abs, max_rel, doubts[0], only_numbers_differ=True)
    if new.is_moved:
        return Comparison(
            NOT_EXERCISED, detail="no result depends on what its edited checkpoints return"
        )
    leaves = [leaf for mode in (*ran, *returned) for leaf in old.modes[mode]["leaves"]]
    return _equal(leaves, max_abs, max_rel)._replace(returned=bool(returned))


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


def _both_returned(old: Result, new: Result) -> List[str]:
    """Return the modes where edited checkpoints return arrays of the same shapes on both sides."""
    return [
        mode
        for mode in old.modes
        if mode.endswith(RETURNED)
        and mode in new.modes
        and not structure_difference(old.modes[mode], new.modes[mode])
    ]


def _returned_otherwise(old: Result, new: Result, mode: str, found: Leaves) -> Tuple[str, bool]:
    """Return what differs in what edited checkpoints return, and whether it is a fault.

    They may wrap more or less than before. Then they have other names, or return results.
    """
    index = found.index
    was, now = (side.modes[mode]["checkpoints"] for side in (old, new))
    detail = "the checkpoint of %s returns other values, though the results are the same: %s"
    wrapped = [[name.rpartition(" at line ")[0] for name in names] for names in (was, now)]
    value = arrays_of(new, mode)[index][1]
    results = arrays_of(old, mode[: -len(RETURNED)] + "eager")
    is_result = any(np.array_equal(value, array) for _, array in results)
    reason = found.reason.partition(": ")[2]
    return detail % (now[index], reason), wrapped[0] == wrapped[1] and not is_result


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


def _has_values(result: Result, mode: str) -> bool:
    """Return whether the values that belong to a gradient were computed."""
    values = mode[: -len("gradient")] + "eager"
    return "error" not in result.modes.get(values, {"error": None})


def _has_gradient(compiled: Dict[str, Any]) -> bool:
    return any(leaf["path"].startswith("[1]") for leaf in compiled["leaves"])


def _values_alone(compiled: Dict[str, Any], old: Dict[str, Any]) -> Dict[str, Any]:
    """Return the compiled results without their gradient, which the old ones lack."""
    leaves = [leaf for leaf in compiled["leaves"] if leaf["path"].startswith("[0]")]
    alike = len(leaves) == len(old["leaves"])
    return {"tree": old["tree"] if alike else compiled["tree"], "leaves": leaves}


def _degenerate(old: Result, ran: List[str]) -> str:
    """Return why results would be the same whatever the code does; empty if they would not."""
    modes = [mode for mode in ran if mode.endswith("eager")]
    modes = [mode for mode in modes if mode != "init eager"] or modes
    leaves = [leaf for mode in modes for leaf in old.modes[mode]["leaves"]]
    arrays = [array for mode in modes for _, array in arrays_of(old, mode)]
    if len(arrays) < len(leaves) or not arrays:
        return ""
    if not any(array.size for array in arrays):
        return "its results are empty"
    if all(array.dtype.kind in "fc" for array in arrays):
        if not any(np.isfinite(array).any() for array in arrays):
            return "its results are not finite"
        gradients = [g for m in ran if m.endswith("gradient") for _, g in arrays_of(old, m)]
        if gradients and not any(array.any() for array in arrays + gradients):
            return "its results and gradients are zero"
    return ""
