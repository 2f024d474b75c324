"""Answers to the requests of the tool: a function for each, by the name in `do`."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Tuple

from . import module_state, unit_cases
from .comparison import changes, results
from .comparison.compare import DIFFERS, FAILS_AFTER
from .comparison.compare import compare as compare_results
from .comparison.evaluate import described_arrays, in_turn
from .comparison.evaluate import evaluate as evaluate_unit
from .environment import configuration, effects
from .inputs import declared, variants
from .load import load_unit
from .lookup import fits
from .program import agreement
from .project import constructors
from .transfer import pickling

Reply = Dict[str, Any]


@effects.refused()
def make(request: Reply) -> Reply:
    """Save inputs for a unit."""
    unit = load_unit(request["module"], request["path"], request["qualname"])
    if not request["qualname"]:
        case: Dict[str, Any] = {"args": (), "kwargs": {}, "context": None, "asked_for": False}
        return _saved([("the module is imported", case)], request["folder"])
    variants.edited = request["edited"]
    with module_state.restored(unit.function):
        made = unit_cases.all_cases(unit, constructors.records(), request["seconds"])
        cases = list(made.cases)
        for _, case in cases:
            case["left_out"] = unit_cases.left_out(unit.function, case)
        reply = _saved(cases, request["folder"])
    if not reply["cases"]:
        reply["detail"] = reply["detail"] or made.detail
    return reply


def _saved(cases: List[Tuple[str, Dict[str, Any]]], folder: str) -> Reply:
    """Save cases as files; the detail says why the first that cannot be saved was left out."""
    written: List[Dict[str, Any]] = []
    reasons: List[str] = []
    for number, (about, case) in enumerate(cases):
        path = os.path.join(folder, "%d.pkl" % number)
        try:
            pickling.save(case, path)
        except pickling.CannotSave as error:
            reasons.append(str(error))
        else:
            written.append({"file": path, "about": about})
    return {
        "cases": written,
        "detail": "the inputs cannot be pickled: " + reasons[0] if reasons else "",
    }


def declare(request: Reply) -> Reply:
    """Save the cases of the user's file."""
    cases = declared.read(request["file"], request["units"], request["known"])
    return {
        "units": {
            name: _saved(found, os.path.join(request["folder"], str(number)))
            for number, (name, found) in enumerate(sorted(cases.items()))
        }
    }


def flip(request: Reply) -> Reply:
    """Save the cases in which each Python bool has its other value."""
    case = pickling.load(request["case"])
    unit = load_unit(request["module"], request["path"], request["qualname"])
    return _saved(list(unit_cases.flipped(case, unit.function)), request["folder"])


def evaluate(request: Reply) -> Reply:
    """Run a unit on a case, and save its programs and results; on several, see `in_turn`."""
    unit = load_unit(request["module"], request["path"], request["qualname"])
    changes.shared_names = request["names"]
    call = unit_cases.FORMS[request["form"]]
    cases = [
        call(unit.function, unit_cases.with_own_defaults(unit.function, pickling.load(file)))
        for file in request["cases"]
    ]
    if len(cases) > 1:
        with effects.refused():
            in_turn(unit.function, cases, request["folder"], request["how"]["seed"])
        return {"failure": {}}  # they are compared by their results alone
    (case,) = cases
    module_state.is_changed = False
    results.aliases.clear()
    shapes = described_arrays(unit.function, case)
    with effects.refused(unless=case.get("asked_for")):
        found = evaluate_unit(unit.function, case, request["folder"], **request["how"])
    return {
        **found,
        "fits": fits(unit.function, case["args"], case["kwargs"])
        and not found["failure"].get("type", "").endswith(results.OtherParameters.__name__),
        "shapes": shapes,
        "settings": configuration.changed(),
        "configures": configuration.is_set_by(request["qualname"]),
        "keeps_data": module_state.is_changed,
        "habits": [
            *("reads the environment variable %s" % name for name in sorted(configuration.read)),
            *("returns a container of its arguments as %s" % at for at in sorted(results.aliases)),
        ],
    }


def compare(request: Reply) -> Reply:
    """Compare what two evaluations have saved."""
    before, after = request["before"], request["after"]
    found = compare_results(before, after, request["tolerances"])
    program = agreement.agreement(before, after)
    dropped = program.detail if program.is_dropped else ""
    reply = dict(found._asdict(), program=program.state, difference="", dropped=dropped)
    if program.state == agreement.FAILS:
        reply.update(verdict=FAILS_AFTER, detail=program.detail, failure=program.failure)
    if program.state == agreement.DIFFERS:
        reply["difference"] = program.detail
        if found.is_abstract:
            detail = "not the same program; %s" % found.detail
            reply.update(verdict=DIFFERS, detail=detail)
    return reply
