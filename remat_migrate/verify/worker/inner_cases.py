"""Cases for a unit, and for the functions it returns, which are compared by calling them."""

from __future__ import annotations

import inspect
import itertools
import os
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Tuple

from . import shim
from .comparison import results
from .inputs import make, varied
from .load import Unit
from .transfer import pickling

Case = Dict[str, Any]

# The time for finding inputs for a function that a unit returns.
_SECONDS = 5.0


def all_cases(unit: Unit, classes: List[type]) -> make.Made:
    """Return inputs for a unit; `classes` are dataclasses of the project that may be arguments.

    A case with `then` is about a function in the unit's result: where in it ("of"), and with which
    arguments to call that ("args", "kwargs").
    """
    hints = {"class": unit.owner, "classes": classes}
    made = make.make_cases(unit.function, unit.function, hints)
    cases = [(about, _by_name(unit.function, case)) for about, case in made.cases]
    if cases:
        with tempfile.TemporaryDirectory() as folder:
            cases += _further(unit, cases[0][1], classes, os.path.join(folder, "case.pkl"))
    return made._replace(cases=cases)


def _further(unit: Unit, case: Case, classes: List[type], path: str) -> List[Tuple[str, Case]]:
    """Return the cases that are derived from running the unit on its first case."""
    try:
        pickling.save(case, path)
    except pickling.CannotSave:
        return []  # reported for the case itself
    # A call may change or donate its arguments, so each gets a copy.
    found = list(varied.varied(unit.function, lambda: pickling.load(path)))
    if case["context"] is None:
        found += _of_result(unit, lambda: pickling.load(path), classes)
    return found


def _by_name(function: Any, case: Case) -> Case:
    """Return a case that passes the removed option and the parameters after it by keyword.

    A wrapper of the user's own may have that option as a parameter, which its migrated form lacks.
    """
    parameters = list(inspect.signature(function).parameters.values())
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if shim.GONE not in names or len(case["args"]) > len(names):
        return case
    first = names.index(shim.GONE)
    named = dict(zip(names[first:], case["args"][first:]))
    return dict(case, args=case["args"][:first], kwargs=dict(case["kwargs"], **named))


def _of_result(
    unit: Unit, load: Callable[[], Case], classes: List[type]
) -> Iterator[Tuple[str, Case]]:
    """Yield cases for the functions in what a unit returns."""
    case = load()
    try:
        result = results.unfolded(results.outcome_of(unit.function, case["args"], case["kwargs"]))
    except Exception:
        return  # evaluating the case reports it
    for place, function in itertools.islice(results.functions(result), results.MOST_FUNCTIONS):
        hints = {"class": None, "classes": classes}
        made = make.make_cases(function, function, hints, _SECONDS)
        for about, inner in made.cases:
            if inner["context"] is None:
                then = {"of": place, "args": inner["args"], "kwargs": inner["kwargs"]}
                what = "its result%s called" % place
                yield (what + ", " + about if about else what), dict(load(), then=then)
