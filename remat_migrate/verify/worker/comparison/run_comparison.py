"""Compare what two runs of a command recorded, unit by unit. Needs only numpy.

A call in one run is compared with the calls in the other run that have the same inputs. If neither
run traces the unit or calls it from several threads or processes, calls are compared in order.
Otherwise any call with the same inputs will do: a checkpoint repeats calls, one run may trace what
the other does not, and the order within a compiled program is not fixed. A call whose inputs the
other run lacks says nothing about the unit: the inputs are random, or depend on an earlier
difference. Such calls are counted, but never make a unit differ.

Results may differ by `PROGRAM` times what `compare` allows for a single unit, because whole
programs are compiled and a checkpoint changes what is compiled together. The tolerance is that of
the lowest precision in either run: values are often computed in bfloat16 and returned in float32.
Inputs drift apart over the steps of a training run, which adds `DRIFT` times their difference.
Because a unit may also read parameters that are not recorded, the tolerance grows by a tenth with
each call, up to `MOST_GROWTH` times.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ..recording.event_reader import Call, Run, UnitCalls
from .compare import DIFFERS, EQUAL, FAILS_AFTER, FAILS_BEFORE, NOT_EXERCISED
from .differences import Allowance, Difference, compare_results, distances
from .entries import TOLERANCES

PROGRAM = 10.0
DRIFT = 100.0
MOST_GROWTH = 100.0
# Inputs that are further apart than this, relative to their largest entry, differ.
SAME_INPUTS = 1e-2
# How many calls with the same inputs are tried.
MOST_CANDIDATES = 40
# How many features are compared first, and how many calls are compared fully at a time.
_TELLING = 8
_AT_ONCE = 32
# From the most digits to the fewest.
_FLOATS = ("float64", "complex128", "float32", "complex64", "float16", "bfloat16")


def compare_runs(
    before: str, after: str, tolerances: Optional[Dict[str, float]] = None
) -> Dict[str, Dict[str, Any]]:
    """Compare two record folders.

    Args:
        before: the folder into which the processes of the old code recorded.
        after: that of the new code.
        tolerances: by dtype, as for `compare.compare`.

    Returns, by identity of a unit: `verdict` (equal, differs, fails-after, fails-before or
    not-exercised), `calls` that were compared, `max_abs` and `max_rel` (None if none was),
    `detail`, and `failure` as `failures.describe` gives it, where the new code failed.
    """
    old, new = Run(before), Run(after)
    allowed = _allowed(tolerances or {}, old, new)
    units = sorted(set(old.units) | set(new.units))
    return {
        unit: _Comparison(old.calls(unit), new.calls(unit), allowed).verdict() for unit in units
    }


def _allowed(tolerances: Dict[str, float], *runs: Run) -> Dict[str, float]:
    """Return the tolerance of each dtype, at least that of the lowest precision in a run."""
    factor = tolerances.get("*", 1.0)
    allowed = {name: factor * own for name, own in TOLERANCES.items()}
    allowed.update(tolerances)
    shown = {name for run in runs for name in run.dtypes}
    coarsest = max([allowed[name] for name in _FLOATS if name in shown] or [0.0])
    return {name: max(own, coarsest) for name, own in allowed.items()}


def recorded_cases(folder: str) -> Dict[str, Dict[str, Any]]:
    """Return the inputs that a run saved.

    Returns, by identity of a unit: `cases`, a list of `{"file", "about", "test"}`, `detail`, why
    the inputs of a call could not be saved, and `tests`, those that called it.
    """
    found: Dict[str, Dict[str, Any]] = {}
    run = Run(folder)
    for unit in run.units:
        cases = []
        reasons = []
        for call in run.calls(unit).calls:
            if call.case:
                cases.append({"file": call.case, "about": call.flags(), "test": call.test})
            if call.case_error:
                reasons.append(call.case_error)
        detail = "the inputs cannot be pickled: " + reasons[0] if reasons else ""
        tests = dict.fromkeys(call.test for call in run.calls(unit).calls if call.test)
        found[unit] = {"cases": cases, "detail": detail, "tests": list(tests)}
    return found


class _Comparison:
    """The calls of one unit in the two runs."""

    def __init__(self, old: UnitCalls, new: UnitCalls, allowed: Dict[str, float]) -> None:
        self.old = old
        self.new = new
        self.allowed = allowed
        # How many calls of the old and the new code have inputs that the other run lacks.
        self.alone = (0, 0)
        self.undetermined = False
        self.index = _Index(old.calls)
        self.errors = {(call.key, call.raised["type"]) for call in old.calls if call.raised}

    def verdict(self) -> Dict[str, Any]:
        """Return the verdict on the unit."""
        found = self._in_order()
        if found is None:
            found = self._in_any_order()
        verdicts = [each.verdict for each in found]
        order = (FAILS_AFTER, DIFFERS, EQUAL, FAILS_BEFORE)
        verdict = next((each for each in order if each in verdicts), NOT_EXERCISED)
        told = found[verdicts.index(verdict)] if verdict in verdicts else None
        values = [each for each in found if each.verdict in (EQUAL, DIFFERS)]
        return {
            "verdict": verdict,
            "calls": len(found),
            "max_abs": max([each.max_abs for each in values]) if values else None,
            "max_rel": max([each.max_rel for each in values]) if values else None,
            "detail": (told.detail if told else "") or self._left_over(),
            "failure": told.failure if told else None,
        }

    def _in_order(self) -> Optional[List[Difference]]:
        """Compare two sequences of calls one to one; None if they are not the same sequence."""
        old, new = self.old.calls, self.new.calls
        if not (self.old.is_sequence and self.new.is_sequence and len(old) == len(new)):
            return None
        found = []
        for number, (before, after) in enumerate(zip(old, new)):
            if before.key != after.key:
                return None
            apart = float(distances(before, after.values[None], after.scales[None])[0])
            if apart > SAME_INPUTS:
                return None
            difference = compare_results(before, after, self._allowance(number, apart))
            if difference.verdict == DIFFERS and self._wavers(before):
                self.undetermined = True
            else:
                found.append(difference)
        return found

    def _in_any_order(self) -> List[Difference]:
        """Compare each call with the best match of the other run that has its inputs."""
        old, new = self.index, _Index(self.new.calls)
        found = []
        answered = set()
        alone = 0
        for number, call in enumerate(old.calls):
            best = self._best(number, call, new, False)
            if best is None:
                alone += 1
            else:
                found.append(best[1])
                answered.add(best[0])
        others = 0
        for number, call in enumerate(new.calls):
            if number not in answered:
                best = self._best(number, call, old, True)
                if best is None:
                    others += 1
                elif best[1].verdict != EQUAL:
                    found.append(best[1])
        self.alone = (alone, others)
        return found

    def _best(
        self, number: int, call: Call, index: "_Index", swapped: bool
    ) -> Optional[Tuple[int, Difference]]:
        """Return the first call with the same inputs and an equal result, else the nearest call.

        `swapped`: the call is one of the new code.
        """
        best = None
        for other, apart in index.candidates(number, call):
            old, new = (index.calls[other], call) if swapped else (call, index.calls[other])
            difference = compare_results(old, new, self._allowance(min(number, other), apart))
            if difference.verdict in (EQUAL, FAILS_BEFORE):
                return other, difference
            if new.raised and new.is_abstract and (new.key, new.raised["type"]) in self.errors:
                continue  # the old code raises it, too, with unknown values
            if difference.verdict == DIFFERS and self._wavers(old):
                self.undetermined = True
                continue
            best = best or (other, difference)
        return best

    def _wavers(self, call: Call) -> bool:
        """Return whether the old code itself gave different results for the same inputs."""
        return any(
            compare_results(call, self.index.calls[other], Allowance(self.allowed)).verdict
            == DIFFERS
            for other, apart in self.index.candidates(0, call)
            if apart == 0.0
        )

    def _allowance(self, number: int, apart: float) -> Allowance:
        growth = min(1 + 0.1 * number, MOST_GROWTH)
        return Allowance(self.allowed, PROGRAM * growth, DRIFT * apart, apart == 0.0)

    def _left_over(self) -> str:
        old, new = self.alone
        if self.undetermined:
            return "the old code itself gives different results for the same inputs"
        if self.old.is_cut or self.new.is_cut:
            # Unmatched calls may be among those that were not recorded.
            return "not all calls were recorded"
        if not self.old.calls:
            return "the command reaches it only in the new code" if self.new.calls else ""
        if not self.new.calls:
            return "the command reaches it only in the old code"
        parts = []
        if old:
            parts.append("{} of {} calls of the old code".format(old, len(self.old.calls)))
        if new:
            parts.append("{} of {} of the new".format(new, len(self.new.calls)))
        return " and ".join(parts) + " had inputs that the other run lacks" if parts else ""


class _Index:
    """The calls of a run, grouped by comparable inputs."""

    def __init__(self, calls: List[Call]) -> None:
        self.calls = calls
        places: Dict[Any, List[int]] = {}
        for number, call in enumerate(calls):
            places.setdefault(call.key, []).append(number)
        self._rows = {
            key: _Rows(numbers, [calls[n] for n in numbers]) for key, numbers in places.items()
        }

    def candidates(self, number: int, call: Call) -> List[Tuple[int, float]]:
        """Calls with the same inputs as a call, and how far apart those are.

        Among the nearest, those with about the same place in the run come first.
        """
        if call.key not in self._rows:
            return []
        rows = self._rows[call.key]
        numbers, abstract, apart = rows.numbers, rows.abstract, rows.distances(call)
        nearest = float(np.min(apart[~abstract], initial=SAME_INPUTS))
        most = _most(nearest)
        near = np.flatnonzero(np.where(abstract, apart <= SAME_INPUTS, apart <= most))
        ordered = sorted(near, key=lambda n: (abstract[n], abs(int(numbers[n]) - number)))
        ordered = ordered[:MOST_CANDIDATES]
        return [(int(numbers[n]), float(apart[n])) for n in ordered]


def _most(nearest: float) -> float:
    """Return how far apart the same inputs may be, given the distance of the nearest ones."""
    return min(SAME_INPUTS, max(3 * nearest, 1e-6))


class _Rows:
    """Comparable calls as rows of features.

    Attributes:
        numbers: the place of each in the run.
        abstract: where only tracing has seen the inputs, which may then be those of any call.
    """

    def __init__(self, numbers: List[int], calls: List[Call]) -> None:
        self.numbers = np.array(numbers)
        self._values = np.stack([call.values for call in calls])
        self._scales = np.stack([call.scales for call in calls])
        self.abstract = np.isnan(self._values).any(axis=1)
        # The features that distinguish calls best.
        spread = np.ptp(self._values, axis=0) / np.maximum(np.max(self._scales, axis=0), 1e-300)
        self._telling = np.argsort(-np.nan_to_num(spread), kind="stable")[:_TELLING]

    def distances(self, call: Call) -> Any:
        """Return the distances of inputs from those of a call; infinite for those too far away."""
        telling = self._telling
        least = distances(call, self._values, self._scales, telling)
        found = np.full(len(self.numbers), np.inf)
        self._fill(found, call, np.flatnonzero(self.abstract))
        possible = np.flatnonzero(~self.abstract & (least <= SAME_INPUTS))
        possible = possible[np.argsort(least[possible], kind="stable")]
        nearest = SAME_INPUTS
        for start in range(0, len(possible), _AT_ONCE):
            rows = possible[start : start + _AT_ONCE]
            if least[rows[0]] > _most(nearest):
                break
            self._fill(found, call, rows)
            nearest = min(nearest, float(np.min(found[rows])))
        return found

    def _fill(self, found: Any, call: Call, rows: Any) -> None:
        if len(rows):
            found[rows] = distances(call, self._values[rows], self._scales[rows])
