"""Measure how far the inputs and results of two recorded calls are apart. Needs only numpy."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np

from ..failures import headline
from ..recording import fingerprint
from ..recording.event_reader import Call
from .compare import DIFFERS, EQUAL, FAILS_AFTER, FAILS_BEFORE
from .entries import SMALL

# A sum whose large terms cancel is compared relative to their size as well: to this share of the
# largest entry of results and inputs. Very large inputs say little about the size of terms.
_FLOOR = 1e-3
_LARGEST_INPUT = 100.0
# A larger tolerance is meaningless, except for the smallest dtypes.
MOST_ALLOWED = 0.1
_EXACT = ("bool", "int", "uint", "key<")


class Difference(NamedTuple):
    """The result of comparing two calls.

    Attributes:
        verdict: equal, differs, fails-after or fails-before.
        max_abs: the largest difference of an entry that was kept.
        max_rel: the largest one relative to the largest entry of its array.
        detail: where it differs, or what failed.
        failure: how the new code failed.
        compared: whether results were compared, of whatever kind.
    """

    verdict: str
    max_abs: float = 0.0
    max_rel: float = 0.0
    detail: str = ""
    failure: Optional[Dict[str, Any]] = None
    compared: bool = True


def distances(call: Call, others: Any, scales: Any, chosen: Any = slice(None)) -> Any:
    """Return how far the inputs of a call are from those of others, given as rows of features.

    The largest difference of any feature, of the chosen ones, relative to the largest entry of its
    array.
    """
    if not call.values.size:
        return np.zeros(len(others))
    scale = np.maximum(np.maximum(call.scales[chosen], scales[:, chosen]), 1e-300)
    apart = np.abs(call.values[chosen] - others[:, chosen]) / scale
    return np.max(np.where(np.isnan(apart), 0.0, apart), axis=1)


class Allowance(NamedTuple):
    """The difference allowed in results, relative to the largest entry of their array.

    Attributes:
        by_dtype: for each dtype by name.
        factor: how many times that.
        besides: and so much more.
        exact: whether integers must be equal.
    """

    by_dtype: Dict[str, float]
    factor: float = 1.0
    besides: float = 0.0
    exact: bool = True

    def of(self, dtype: str) -> float:
        """Return the relative difference allowed for a floating-point dtype."""
        own = self.by_dtype.get(dtype, SMALL)
        return min(self.factor * own, max(own, MOST_ALLOWED)) + self.besides


def compare_results(old: Call, new: Call, allowance: Allowance) -> Difference:
    """Compare what two calls with the same inputs returned or raised."""
    if new.raised is not None:
        if old.raised is None:
            return Difference(FAILS_AFTER, detail=headline(new.raised), failure=new.raised)
        if not _alike(old.raised, new.raised):
            detail = "it raises {}, was {}".format(headline(new.raised), headline(old.raised))
            return Difference(DIFFERS, detail=detail)
    if old.raised is not None:
        return Difference(FAILS_BEFORE, detail=headline(old.raised))
    typed = _types(old.inputs) == _types(new.inputs)
    ground = _FLOOR * min(_largest(old.inputs), _LARGEST_INPUT)
    return _Results(allowance, typed, ground).compare(old.outputs, new.outputs)


def _alike(old: Dict[str, Any], new: Dict[str, Any]) -> bool:
    """Return whether two errors are of one kind; JAX has several for concretization."""
    if old["type"] == new["type"]:
        return True
    return all(each["type"].startswith("jax.") and "racer" in each["type"] for each in (old, new))


def _types(inputs: List[Any]) -> List[Any]:
    """Return the dtypes of inputs; where they differ, those of the results may differ, too."""
    return [
        [leaf[0] != "number", leaf[1], leaf[3]] if leaf[0] in ("array", "traced") else leaf[:2]
        for _, leaf in inputs
    ]


def _largest(leaves: List[Any]) -> float:
    """Return the largest entry of all floating-point arrays."""
    arrays = [leaf for _, leaf in leaves if leaf[0] == "array"]
    return max([0.0] + [float(leaf[8]) for leaf in arrays if not leaf[1].startswith(_EXACT)])


class _Results:
    """Compares the leaves of two results. `ground` is always added to the scale."""

    def __init__(self, allowance: Allowance, typed: bool, ground: float) -> None:
        self.allowance = allowance
        self.typed = typed
        self.ground = ground
        self.max_abs = self.max_rel = 0.0

    def compare(self, old: List[Any], new: List[Any]) -> Difference:
        """Return the first difference, or how far equal results are apart."""
        paths, others = [path for path, _ in old], [path for path, _ in new]
        if paths != others:
            return Difference(DIFFERS, detail=_structure(paths, others))
        self.ground = max(self.ground, _FLOOR * (_largest(old) + _FLOOR))
        for (path, before), (_, after) in zip(old, new):
            reason = self._leaf(before, after)
            if reason:
                at = "result{}: ".format(path) if path else "the result: "
                return Difference(DIFFERS, self.max_abs, self.max_rel, at + reason)
        return Difference(EQUAL, self.max_abs, self.max_rel)

    def _leaf(self, old: Any, new: Any) -> str:
        """Return why two leaves differ; empty if they do not."""
        if old[0] == "static" or new[0] == "static":
            names = [leaf[1] if leaf[0] == "static" else "" for leaf in (old, new)]
            # A migration may rename the function.
            if old == new or all(name.startswith(fingerprint.FUNCTION) for name in names):
                return ""
            return "is {}, was {}".format(_shown(new), _shown(old))
        if self.typed and "number" in (old[0], new[0]) and old[:2] != new[:2]:
            # A Python number is an array where a run traces it; then dtypes are not compared.
            return "is {}, was {}".format(_shown(new), _shown(old))
        old, new = fingerprint.as_array(old), fingerprint.as_array(new)
        if old[2] != new[2]:
            return "shape {}, was {}".format(tuple(new[2]), tuple(old[2]))
        if self.typed and None not in (old[3], new[3]):
            if old[1] != new[1]:
                return "dtype {}, was {}".format(new[1], old[1])
            if old[3] != new[3]:
                kinds = ("strongly", "weakly")
                return "is {} typed, was {}".format(kinds[new[3]], kinds[old[3]])
        if "traced" in (old[0], new[0]):
            return ""
        return self._entries(old, new)

    def _entries(self, old: Any, new: Any) -> str:
        if old[4:7] != new[4:7]:
            return "different entries are finite"
        if old[1].startswith(_EXACT) and new[1].startswith(_EXACT):
            if not self.allowance.exact or old[7:] == new[7:]:
                return ""
            return _first(old, new)
        entries, largest = max(old[4], 1), max(old[8], new[8])
        relative = max(self.allowance.of(each[1]) for each in (old, new))
        scale = largest + self.ground
        limit = relative * scale
        apart = [abs(x - y) for x, y in zip(old[9], new[9]) if x != y and x == x and y == y]
        most = max([*apart, abs(old[8] - new[8])])
        self.max_abs = max(self.max_abs, most)
        self.max_rel = max(self.max_rel, most / scale)
        each = entries * limit
        limits = (each, each, 2 * each * (largest + limit), each)
        if most <= limit and all(abs(x - y) <= z for x, y, z in zip(old[7], new[7], limits)):
            return ""
        return _first(old, new)


def _shown(leaf: Any) -> str:
    if leaf[0] == "static":
        return str(leaf[1])
    if leaf[0] == "number":
        return "the {} {}".format(leaf[1], leaf[2])
    return "an array {}{}".format(leaf[1], list(leaf[2]))


def _structure(old: List[str], new: List[str]) -> str:
    gone = [path for path in old if path not in new]
    come = [path for path in new if path not in old]
    parts = ["result{} is missing".format(gone[0])] if gone else []
    parts += ["result{} is new".format(come[0])] if come else []
    return "the structure differs: " + (" and ".join(parts) or "the number of parts")


def _first(old: Any, new: Any) -> str:
    """Return how the entries differ: the sample that differs most, else a sum."""
    apart = [(abs(x - y), x, y) for x, y in zip(old[9], new[9]) if x == x and y == y]
    most = max(apart, default=(0.0, 0.0, 0.0))
    if most[0] > 1e-3 * abs(old[8] - new[8]):
        return "an entry is {:.6g}, was {:.6g}".format(most[2], most[1])
    if old[8] != new[8]:
        return "the largest entry is {:.6g}, was {:.6g}".format(new[8], old[8])
    return "the sum of the entries is {:.6g}, was {:.6g}".format(new[7][0], old[7][0])
