"""Compare the arrays of two results, and say which differences are rounding. Needs only numpy.

Two arrays are equal if no entry differs by more than the tolerance of their dtype times the largest
entry of the array, so that a sum whose terms cancel is not held to more digits than it has. Because
a migration is not to blame for rounding, two more differences are allowed: a few units in the last
place of the largest entry of the whole result (for a gradient that is zero except for rounding),
and a few times the difference between the eager and compiled results of the old code.

Where results differ by more, the old code is run again with other seeds, and with inputs moved by
rounding (see `noise`). A difference that such a run explains is no fault of the migration: it is
rounding if it is small, and else the comparison is inconclusive.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, List, Tuple

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
# How many times as far as in a run under other conditions results may be apart.
_EXPLAINED = 4
# Beyond this share of its entries, what moves a result makes it unpredictable.
_UNPREDICTABLE = 0.1
# Where so large a share of the entries moves that it is not a few that are at a threshold.
_MANY = 0.25

VARIES = "the old code's own results vary from run to run: "
_CHAOTIC = "rounding moves the old code's own results by as much: "


class Result:
    """The modes of a result and its arrays."""

    def __init__(self, folder: str) -> None:
        with open(os.path.join(folder, "result.json")) as file:
            read = json.load(file)
        self.modes: Dict[str, Any] = read["modes"]
        self.defaults: Dict[str, str] = read["defaults"]
        self.policy_errors: List[str] = read.get("policy_errors", [])
        self.is_abstract: bool = read.get("abstract", False)
        self.is_moved: bool = read.get("moved", False)
        self.precision: str = read.get("precision", "")
        with open(os.path.join(folder, "arrays.bin"), "rb") as stored:
            self._data = stored.read()

    def array(self, leaf: Dict[str, Any]) -> Any:
        """Return the array of a leaf."""
        count = int(np.prod(leaf["shape"], dtype=np.int64))
        array = np.frombuffer(self._data, leaf["stored"], count, leaf["offset"])
        return array.reshape(leaf["shape"])


# The mode of what edited checkpoints return.
RETURNED = "returned"

# In the text of a structure.
POLICY = "<policy>"


def take_policies(old: Dict[str, Any], new: Dict[str, Any]) -> bool:
    """Replace old policies by those of the new code; return whether there are any.

    A policy changes memory and time. Called in place of passed, `nothing_saveable` is False.
    """
    found = False
    if old["tree"] == new["tree"]:
        for before, after in zip(old["leaves"], new["leaves"]):
            was_policy = before.get("policy") or before.get("dtype") == "bool"
            if after.get("policy") and was_policy and not before.get("shape"):
                path = before["path"]
                before.clear()
                before.update(after, path=path)
                found = True
    return found


def structure_difference(old: Dict[str, Any], new: Dict[str, Any]) -> str:
    """Return how two results differ in structure, shapes, or dtypes; empty if they do not."""
    if old["tree"] != new["tree"] and not _differ_by_policies(old["tree"], new["tree"]):
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


def _differ_by_policies(old: str, new: str) -> bool:
    """Return whether the only difference of two structures is which policies they hold."""
    alike = re.escape(new).replace(re.escape(POLICY), "(?:False|True|%s)" % re.escape(POLICY))
    return POLICY in new and re.fullmatch(alike, old) is not None


def _at(path: str) -> str:
    return "result%s: " % path if path else "the result: "


def _short(text: str) -> str:
    text = text.replace("PyTreeDef(", "").replace("\n", " ")
    return text if len(text) <= 80 else text[:77] + "..."


class Noise:
    """How far the old code's results move without a migration, by variation of the run."""

    def __init__(self, old: Result, folders: Dict[str, str]) -> None:
        self.old = old
        self.runs = {name: Result(folder) for name, folder in folders.items()}

    @property
    def precision(self) -> str:
        """The coarsest dtype that the old code computes in; empty if it is not known."""
        return self.runs["rounding"].precision if "rounding" in self.runs else ""

    def changes_structure(self, mode: str) -> bool:
        """Return whether a variation changes the structure of the results, or fails."""
        modes = [run.modes.get(mode, {}) for run in self.runs.values()]
        return any(
            "error" in m or structure_difference(self.old.modes[mode], m) for m in modes if m
        )

    def explains(self, name: str, mode: str, index: int, a: Any, b: Any) -> float:
        """Return how far a variation moves an array, if that explains how far two are apart.

        Zero if it does not. One entry that jumps does not explain a difference of many.
        """
        moved = self.runs[name].modes.get(mode, {}) if name in self.runs else {}
        if "leaves" not in moved or structure_difference(self.old.modes[mode], moved):
            return 0.0
        leaf, c = arrays_of(self.runs[name], mode)[index]
        apart, by_itself, whole = _extent(a, b), _extent(a, c), _extent(a, np.zeros_like(a))
        if all(x > _UNPREDICTABLE * y for x, y in zip(by_itself, whole)):
            if name == "random" or np.mean(_distance(a, c) > _UNPREDICTABLE * whole[1]) > _MANY:
                return float("inf")
        if name == "rounding" and self.precision not in ("", leaf["dtype"]):
            # A result that is kept in more digits than some operation has may need them.
            return 0.0
        if not _same_specials(a, b):
            return 0.0 if _same_specials(a, c) else float("inf")
        is_explained = all(x <= _EXPLAINED * y for x, y in zip(apart, by_itself))
        return _EXPLAINED * by_itself[0] if is_explained else 0.0

    def compiled(self, mode: str) -> Dict[int, float]:
        """Return the distance between eager and compiled results, by leaf."""
        results = [self.old, *self.runs.values()][:2]
        return next(filter(None, (_rounding(result, mode) for result in results)), {})


def _distance(a: Any, b: Any) -> Any:
    """Return how far the entries of two arrays are apart, of those that are finite in both."""
    if a.dtype.kind not in "fc":
        return (a != b).astype(float)
    both = np.isfinite(a) & np.isfinite(b)
    return np.abs(_wide(a[both]) - _wide(b[both]))


def _extent(a: Any, b: Any) -> Tuple[float, float]:
    """Return the largest and the root mean square difference of two arrays."""
    apart = _distance(a, b)
    if a.dtype.kind not in "fc":
        return float(np.sum(apart)), float(np.sum(apart))
    most = float(np.max(apart, initial=0.0))
    # Scaled, because the square of a large number may not be finite.
    return most, most * float(np.sqrt(np.mean((apart / most) ** 2))) if most else 0.0


class Leaves:
    """The comparison of the arrays of one mode.

    Attributes:
        max_abs: the largest difference.
        max_rel: the largest difference relative to the largest entry of its array.
        doubted: whether other modes leave a doubt.
        reason: where a difference exceeds its limit; empty if none does.
        index: of the array that it is about.
        doubt: where one does that runs of the old code show as well; empty if none does.
    """

    def __init__(
        self,
        old: Result,
        new: Result,
        mode: str,
        allowed: Dict[str, float],
        noise: Noise,
        doubted: bool,
    ) -> None:
        self.mode = mode
        self.allowed = allowed
        self.noise = noise
        self.doubted = doubted
        self.max_abs = self.max_rel = 0.0
        self.reason = self.doubt = ""
        self.index = 0
        before, after = arrays_of(old, mode), arrays_of(new, mode)
        self.compiled = noise.compiled(mode)
        self.largest = max(
            [_largest(array) for _, array in before if array.dtype.kind in "fc"] or [0.0]
        )
        for index, ((leaf, a), (_, b)) in enumerate(zip(before, after)):
            said = self._inexact(index, leaf, a, b) if a.dtype.kind in "fc" else self._exact(a, b)
            if said:
                self._note(index, leaf, a, b, _at(leaf["path"]) + said)

    def _exact(self, a: Any, b: Any) -> str:
        if np.array_equal(a, b):
            return ""
        difference = np.max(np.abs(a.astype(float) - b.astype(float)), initial=0.0)
        self.max_abs = max(self.max_abs, float(difference))
        return "%d of %d entries differ" % (int(np.sum(a != b)), a.size)

    def _inexact(self, index: int, leaf: Dict[str, Any], a: Any, b: Any) -> str:
        if not _same_specials(a, b):
            return "different entries are finite"
        difference, own, largest = _extent(a, b)[0], _largest(a), self.largest
        relative = difference / own if own else (float(difference > 0))
        epsilon = _EPSILONS.get(leaf["dtype"], _FLOAT32_EPSILON)
        tolerance = self.allowed.get(leaf["dtype"], SMALL)
        limit = max(
            tolerance * own,
            min(_LAST_PLACES * epsilon, tolerance) * largest,
            min(_ROUNDING * self.compiled.get(index, 0.0), self._most(leaf)),
        )
        self.max_abs = max(self.max_abs, difference)
        # A difference below the rounding of larger entries says nothing.
        if difference > _LAST_PLACES * epsilon * largest or own > 1e-3 * largest:
            self.max_rel = max(self.max_rel, relative)
        if difference <= limit:
            return ""
        finite = np.isfinite(a)
        apart = np.abs(np.where(finite, _wide(a) - _wide(b), 0))
        entry = np.unravel_index(int(np.argmax(apart)), a.shape)
        shown = (list(map(int, entry)), _shown(b[entry]), _shown(a[entry]))
        return "entry %s is %.6g, was %.6g" % shown

    def _most(self, leaf: Dict[str, Any]) -> float:
        """Return the largest difference that may be rounding; beyond, the code behaves differently.

        A float32 result of bfloat16 operations is rounded as they are.
        """
        names = [name for name in (leaf["dtype"], self.noise.precision) if name]
        tolerance = max(self.allowed.get(name, SMALL) for name in names)
        return min(_MOST * tolerance, _MOST_EVER) * self.largest

    def _note(self, index: int, leaf: Dict[str, Any], a: Any, b: Any, said: str) -> None:
        """Note a difference above the limit, unless runs of the old code explain it."""
        if self.doubted and (self.mode.endswith("gradient") or leaf["path"].startswith("[1]")):
            # A gradient of unpredictable values, which often overflows.
            self.doubt = self.doubt or said
            return
        if self.noise.explains("random", self.mode, index, a, b):
            self.doubt = self.doubt or VARIES + said
            return
        moved = self.noise.explains("rounding", self.mode, index, a, b)
        if not moved:
            self._refuse(index, said)
            return
        if moved == float("inf") or a.dtype.kind not in "fc":
            self.doubt = self.doubt or _CHAOTIC + said
        elif _extent(a, b)[0] > self._most(leaf):
            self._refuse(index, said)

    def _refuse(self, index: int, said: str) -> None:
        if not self.reason:
            self.reason, self.index = said, index


def allowed_differences(tolerances: Dict[str, float]) -> Dict[str, float]:
    """Return the tolerance of each dtype: the user's, else the default times that of `*`."""
    factor = tolerances.get("*", 1.0)
    return dict({name: factor * own for name, own in TOLERANCES.items()}, **tolerances)


def arrays_of(result: Result, mode: str) -> List[Tuple[Dict[str, Any], Any]]:
    """Return the arrays of a mode with what is known of each."""
    leaves = result.modes[mode]["leaves"]
    return [(leaf, result.array(leaf)) for leaf in leaves if "shape" in leaf]


def _rounding(old: Result, mode: str) -> Dict[int, float]:
    """Return the distance between the old code's eager and compiled results, by leaf."""
    label, _, kind = mode.rpartition(" ")
    if kind == RETURNED:
        return {}
    label = label and label + " "
    eager = [m for m in (label + "eager", label + "gradient") if m in old.modes]
    if any("error" in old.modes[m] for m in eager) or "error" in old.modes.get(
        label + "jit", {"error": None}
    ):
        return {}
    apart = [a for m in eager for _, a in arrays_of(old, m)]
    compiled = [a for _, a in arrays_of(old, label + "jit")]
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
        found = found[len(arrays_of(old, label + "eager")) :]
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
