"""Compare the arrays of two results, and say which differences are rounding. Needs only numpy.

Two arrays are equal if no entry differs by more than the tolerance times the largest entry of the
array, so that a sum whose terms cancel is not held to more digits than it has. The tolerance is
that of the dtype or, if the old code rounds to a coarser one, of that. A few units in the last
place of the largest entry of the whole result are allowed as well, for a gradient that is zero
except for rounding.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

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


class Result:
    """The modes of a result and its arrays."""

    def __init__(self, folder: str) -> None:
        with open(os.path.join(folder, "result.json")) as file:
            read = json.load(file)
        self.modes: Dict[str, Any] = read["modes"]
        self.defaults: Dict[str, str] = read["defaults"]
        self.is_abstract: bool = read.get("abstract", False)
        self.precision: str = read.get("precision", "")
        with np.load(os.path.join(folder, "arrays.npz")) as stored:
            self._arrays = dict(stored)

    def array(self, leaf: Dict[str, Any]) -> Any:
        """Return the array of a leaf."""
        return self._arrays["arr_%d" % leaf["number"]]


def structure_difference(old: Dict[str, Any], new: Dict[str, Any]) -> str:
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


class Apart(NamedTuple):
    """How far two arrays are apart, the difference relative to the largest entry, too.

    Attributes:
        said: where that is too far, in words.
    """

    absolute: float = 0.0
    relative: float = 0.0
    said: str = ""


def apart(old: Result, new: Result, mode: str, allowed: Dict[str, float]) -> Iterator[Apart]:
    """Yield how far the arrays of a mode are apart."""
    arrays = arrays_of(old, mode)
    largest = max((_largest(a) for _, a in arrays if a.dtype.kind in "fc"), default=0.0)
    for (leaf, a), (_, b) in zip(arrays, arrays_of(new, mode)):
        # If the old code rounds to a coarser dtype, its limits are those.
        names = [name for name in (leaf["dtype"], old.precision) if name]
        tolerance = max(allowed.get(name, SMALL) for name in names)
        epsilon = max(_EPSILONS.get(name, _FLOAT32_EPSILON) for name in names)
        found = _apart(a, b, largest, tolerance, _LAST_PLACES * epsilon)
        yield found._replace(said=found.said and _at(leaf["path"]) + found.said)


def _apart(a: Any, b: Any, largest: float, tolerance: float, rounding: float) -> Apart:
    if a.dtype.kind not in "fc":
        if np.array_equal(a, b):
            return Apart()
        difference = float(np.max(np.abs(a.astype(float) - b.astype(float)), initial=0.0))
        return Apart(difference, 0.0, "%d of %d entries differ" % (int(np.sum(a != b)), a.size))
    if not _same_specials(a, b):
        return Apart(said="different entries are finite")
    finite = np.isfinite(a)
    distances = np.abs(_wide(np.where(finite, a, 0)) - _wide(np.where(finite, b, 0)))
    difference, own = float(np.max(distances, initial=0.0)), _largest(a)
    relative = difference / own if own else float(difference > 0)
    if difference <= rounding * largest and own <= 1e-3 * largest:
        relative = 0.0  # a difference below the rounding of larger entries says nothing
    if difference <= max(tolerance * own, min(rounding, tolerance) * largest):
        return Apart(difference, relative)
    entry = np.unravel_index(int(np.argmax(distances)), a.shape)
    shown = (list(map(int, entry)), _shown(b[entry]), _shown(a[entry]))
    return Apart(difference, relative, "entry %s is %.6g, was %.6g" % shown)


def allowed_differences(tolerances: Dict[str, float]) -> Dict[str, float]:
    """Return the tolerance of each dtype: the user's, else the default times that of `*`."""
    factor = tolerances.get("*", 1.0)
    return dict({name: factor * own for name, own in TOLERANCES.items()}, **tolerances)


def arrays_of(result: Result, mode: str) -> List[Tuple[Dict[str, Any], Any]]:
    """Return the arrays of a mode with what is known of each."""
    leaves = result.modes[mode]["leaves"]
    return [(leaf, result.array(leaf)) for leaf in leaves if "shape" in leaf]


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
