"""Compare what a unit computed before and after. Needs only numpy.

Two arrays are equal if no entry differs by more than the tolerance of their dtype times the largest
entry of the array, so that a sum whose terms cancel is not held to more digits than it has. Because
a migration is not to blame for rounding, two more differences are allowed: a few units in the last
place of the largest entry of the whole result (for a gradient that is zero except for rounding),
and a few times the difference between the eager and compiled results of the old code.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

TOLERANCES = {
    "float64": 1e-11,
    "float32": 1e-5,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "complex64": 1e-5,
    "complex128": 1e-11,
}
# float8 and smaller: two units in the last place.
SMALL = 0.25
_EPSILONS = {"float64": 2.3e-16, "complex128": 2.3e-16, "float16": 9.8e-4, "bfloat16": 7.9e-3}
_FLOAT32_EPSILON = 1.2e-7
_LAST_PLACES = 8
_ROUNDING = 8
# Limits on a tolerance after rounding is added: relative to the tolerance, and absolute.
_MOST, _MOST_EVER = 1e3, 0.1

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
    """

    verdict: str
    max_abs: Optional[float] = None
    max_rel: Optional[float] = None
    detail: str = ""
    failure: Optional[Dict[str, Any]] = None
    only_numbers_differ: bool = False


def compare(before: str, after: str, tolerances: Optional[Dict[str, float]] = None) -> Comparison:
    """Compare two result folders that `evaluate` wrote."""
    old, new = _Result(before), _Result(after)
    allowed = _allowed(tolerances or {})
    ran = [mode for mode in old.modes if "error" not in old.modes[mode]]
    if old.modes and not ran:
        error = next(iter(old.modes.values()))["error"]
        return Comparison(FAILS_BEFORE, detail=_said(error), failure=error)
    for name, default in old.defaults.items():
        now = new.defaults.get(name, default)
        if now != default:
            detail = "the default of %s is %s, was %s" % (name, now, default)
            return Comparison(DIFFERS, detail=detail)
    if not old.modes:
        detail = "nothing was computed"
        return Comparison(NOT_EXERCISED, detail=detail, only_numbers_differ=True)
    max_abs = max_rel = 0.0
    for mode in ran:
        where = _where(mode)
        outcome = new.modes.get(mode)
        if outcome is None and mode.endswith("gradient") and _has_values(new, mode):
            continue  # skipped because it is slow; the compiled gradient is there
        if outcome is None or "error" in outcome:
            error = outcome["error"] if outcome else next(iter(new.modes.values()))["error"]
            return Comparison(FAILS_AFTER, detail=_said(error) + where, failure=error)
        had, has = _has_gradient(old.modes[mode]), _has_gradient(outcome)
        if mode.endswith("jit") and had != has:
            error = new.modes.get(mode[: -len("jit")] + "gradient", {}).get("error")
            if had and error:
                detail = _said(error) + " in the gradient" + where
                return Comparison(FAILS_AFTER, detail=detail, failure=error)
            if has:
                # Without a gradient in the old code, none is needed.
                outcome = new.modes[mode] = _values_alone(outcome, old.modes[mode])
        reason = _structure(old.modes[mode], outcome)
        if reason:
            return Comparison(DIFFERS, detail=reason + where)
        absolute, relative, reason = _values(old, new, mode, allowed)
        max_abs, max_rel = max(max_abs, absolute), max(max_rel, relative)
        if reason:
            return Comparison(DIFFERS, max_abs, max_rel, reason + where, only_numbers_differ=True)
    return _equal([leaf for mode in ran for leaf in old.modes[mode]["leaves"]], max_abs, max_rel)


def _equal(leaves: List[Dict[str, Any]], max_abs: float, max_rel: float) -> Comparison:
    """Return the verdict where nothing differs, which depends on what the result holds."""
    if not leaves:
        return Comparison(EQUAL, max_abs, max_rel, "it returns nothing")
    if all("function" in leaf for leaf in leaves):
        return Comparison(
            NOT_EXERCISED, detail="nothing calls the functions or classes that it returns"
        )
    return Comparison(EQUAL, max_abs, max_rel)


def _allowed(tolerances: Dict[str, float]) -> Dict[str, float]:
    """Return the tolerance of each dtype: the user's, else the default times that of `*`."""
    factor = tolerances.get("*", 1.0)
    return dict({name: factor * own for name, own in TOLERANCES.items()}, **tolerances)


def _where(mode: str) -> str:
    label, _, kind = mode.rpartition(" ")
    return _WHERE[kind] + (" of %s" % label if label else "")


def _said(error: Dict[str, Any]) -> str:
    lines = error["message"].strip().splitlines()
    return "%s: %s" % (error["type"], lines[0]) if lines else str(error["type"])


class _Result:
    """The modes of a result and its arrays."""

    def __init__(self, folder: str) -> None:
        with open(os.path.join(folder, "result.json")) as file:
            read = json.load(file)
        self.modes: Dict[str, Any] = read["modes"]
        self.defaults: Dict[str, str] = read["defaults"]
        with open(os.path.join(folder, "arrays.bin"), "rb") as stored:
            self._data = stored.read()

    def array(self, leaf: Dict[str, Any]) -> Any:
        """Return the array of a leaf."""
        count = int(np.prod(leaf["shape"], dtype=np.int64))
        array = np.frombuffer(self._data, leaf["stored"], count, leaf["offset"])
        return array.reshape(leaf["shape"])


def _has_values(result: _Result, mode: str) -> bool:
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


def _structure(old: Dict[str, Any], new: Dict[str, Any]) -> str:
    """Return how two results differ in structure, shapes, or dtypes; empty if they do not."""
    if old["tree"] != new["tree"]:
        return "the structure is %s, was %s" % (_short(new["tree"]), _short(old["tree"]))
    for before, after in zip(old["leaves"], new["leaves"]):
        at = _at(before["path"])
        if "function" in before or "function" in after:
            if before.keys() != after.keys():
                return "%sis a function on only one side" % at
            continue
        if ("other" in before) != ("other" in after):
            return "%sis an array on only one side" % at
        if "other" in before:
            if before["other"] != after["other"]:
                return "%sis %s, was %s" % (at, _short(after["other"]), _short(before["other"]))
            continue
        for what in ("shape", "dtype"):
            if before[what] != after[what]:
                shown = tuple if what == "shape" else str
                return "%s%s %s, was %s" % (at, what, shown(after[what]), shown(before[what]))
        if before["weak"] != after["weak"]:
            kinds = ("strongly", "weakly")
            return "%sis %s typed, was %s" % (at, kinds[after["weak"]], kinds[before["weak"]])
    return ""


def _at(path: str) -> str:
    return "result%s: " % path if path else "the result: "


def _short(text: str) -> str:
    text = text.replace("PyTreeDef(", "").replace("\n", " ")
    return text if len(text) <= 80 else text[:77] + "..."


def _values(
    old: _Result, new: _Result, mode: str, allowed: Dict[str, float]
) -> Tuple[float, float, str]:
    """Return the largest differences of a mode, and where one exceeds its limit."""
    before = _arrays(old, mode)
    after = _arrays(new, mode)
    noise = _rounding(old, mode)
    largest = max([_largest(array) for _, array in before if array.dtype.kind in "fc"] or [0.0])
    max_abs = max_rel = 0.0
    reason = ""
    for index, ((leaf, a), (_, b)) in enumerate(zip(before, after)):
        at = _at(leaf["path"])
        if a.dtype.kind not in "fc":
            if not np.array_equal(a, b):
                count = int(np.sum(a != b))
                reason = reason or "%s%d of %d entries differ" % (at, count, a.size)
                difference = np.max(np.abs(a.astype(float) - b.astype(float)), initial=0.0)
                max_abs = max(max_abs, float(difference))
            continue
        if not _same_specials(a, b):
            reason = reason or "%sdifferent entries are finite" % at
            continue
        finite = np.isfinite(a)
        difference = float(np.max(np.abs(_wide(a[finite]) - _wide(b[finite])), initial=0.0))
        own = _largest(a)
        relative = difference / own if own else (float(difference > 0))
        epsilon = _EPSILONS.get(leaf["dtype"], _FLOAT32_EPSILON)
        tolerance = allowed.get(leaf["dtype"], SMALL)
        limit = max(
            tolerance * own,
            min(_LAST_PLACES * epsilon, tolerance) * largest,
            # A larger difference is not rounding: the code behaves differently when compiled.
            min(_ROUNDING * noise.get(index, 0.0), min(_MOST * tolerance, _MOST_EVER) * largest),
        )
        max_abs = max(max_abs, difference)
        # A difference below the rounding of larger entries says nothing.
        if difference > _LAST_PLACES * epsilon * largest or own > 1e-3 * largest:
            max_rel = max(max_rel, relative)
        if difference > limit and not reason:
            entry = np.unravel_index(
                int(np.argmax(np.abs(np.where(finite, _wide(a) - _wide(b), 0)))), a.shape
            )
            reason = "%sentry %s is %.6g, was %.6g" % (
                at,
                list(map(int, entry)),
                _shown(b[entry]),
                _shown(a[entry]),
            )
    return max_abs, max_rel, reason


def _arrays(result: _Result, mode: str) -> List[Tuple[Dict[str, Any], Any]]:
    leaves = result.modes[mode]["leaves"]
    return [(leaf, result.array(leaf)) for leaf in leaves if "shape" in leaf]


def _rounding(old: _Result, mode: str) -> Dict[int, float]:
    """Return the distance between the old code's eager and compiled results, by leaf."""
    label = mode.rpartition(" ")[0]
    label = label and label + " "
    eager = [m for m in (label + "eager", label + "gradient") if m in old.modes]
    if any("error" in old.modes[m] for m in eager) or "error" in old.modes.get(
        label + "jit", {"error": None}
    ):
        return {}
    apart = [a for m in eager for _, a in _arrays(old, m)]
    compiled = [a for _, a in _arrays(old, label + "jit")]
    if [a.shape for a in apart] != [a.shape for a in compiled]:
        return {}
    found = []
    for a, b in zip(apart, compiled):
        if a.dtype.kind not in "fc":
            found.append(0.0)
            continue
        both = np.isfinite(a) & np.isfinite(b)
        found.append(float(np.max(np.abs(_wide(a[both]) - _wide(b[both])), initial=0.0)))
    if mode == label + "gradient":
        found = found[len(_arrays(old, label + "eager")) :]
    return dict(enumerate(found))


def _same_specials(a: Any, b: Any) -> bool:
    """Return whether NaN and infinities are at the same indices."""
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return False
    infinite = np.isinf(a)
    return np.array_equal(infinite, np.isinf(b)) and np.array_equal(a[infinite], b[infinite])


def _wide(array: Any) -> Any:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _largest(array: Any) -> float:
    finite = array[np.isfinite(array)]
    return float(np.max(np.abs(_wide(finite)), initial=0.0))


def _shown(value: Any) -> Any:
    return abs(value) if np.iscomplexobj(value) else float(value)
