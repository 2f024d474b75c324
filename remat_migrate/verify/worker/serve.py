"""The worker's loop: requests are lines of JSON on one pipe, replies on another.

What the code under test prints goes to a log file. What it raises becomes part of a reply. If it
ends the process, the parent starts another worker.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import sys
from typing import Any, Dict, List, Tuple

from . import computed, coverage, interpreter_state, relocate, shim
from .environment import configuration, effects, ledger
from .environment import install as environment
from .failures import describe
from .load import NotFound, load_module, load_unit
from .lookup import fits
from .transfer import pickling

Reply = Dict[str, Any]

# Beyond this much memory, the process is not used for another unit.
_most_resident = sys.maxsize


def main() -> None:
    """Answer requests until there are no more."""
    incoming, outgoing = (int(n) for n in os.environ.pop("REMAT_MIGRATE_CHANNEL").split(","))
    for descriptor in (incoming, outgoing):
        # Processes that the code under test starts must not keep the pipes open.
        os.set_inheritable(descriptor, False)
    process = os.getpid()
    # The code under test may replace these functions.
    number, end, write, dumps = os.getpid, os._exit, os.write, json.dumps
    with os.fdopen(incoming, encoding="utf-8") as requests:
        for line in requests:
            request = json.loads(line)
            reply = dict(_answer(request), number=request["number"])
            if number() != process:
                # The code under test has forked, and this is the child.
                end(0)
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            write(outgoing, (dumps(reply) + "\n").encode())


def _answer(request: Reply) -> Reply:
    """Return a reply; `changed` lists what the code under test has changed about the process."""
    before = None
    reply: Reply
    ledger.begin()
    try:
        if "qualname" in request:
            # Changes made by importing are part of the project's environment.
            load_unit(request["module"], request["path"], request["qualname"])
            configuration.apply(sys.modules["jax"], request["path"])
            before = interpreter_state.snapshot()
            coverage.begin()
            computed.begin(request["qualname"])
        reply = _ANSWERS[request["do"]](request)
    except NotFound as error:
        reply = {"missing": str(error)}
    except BaseException as error:
        # SystemExit and KeyboardInterrupt in the code under test are failures, too.
        reply = {"error": describe(error), "running": before is not None}
    if "qualname" in request:
        reply["environment"] = ledger.summary(request["path"])
    if before is not None:
        reply["executed"] = coverage.report()
        # Code may keep for later calls that something is not available.
        refused = ledger.state.refused
        reply["changed"] = refused or interpreter_state.changes(before, _most_resident)
    return reply


def _start(request: Reply) -> Reply:
    sys.path[:0] = request["paths"]
    sys.argv = ["remat-migrate"]
    effects.install(request["scratch"])
    relocate.install(request["original"], request["copy"])
    if request["spots"]:
        coverage.install(request["spots"])
    if request["shim"]:
        shim.install(request["shim"])
    environment.install(request["copy"])
    jax = importlib.import_module("jax")
    configuration.install(jax)
    if request["memory"]:
        global _most_resident
        _most_resident = interpreter_state.resident_bytes() + request["memory"] // 2
        _limit_memory(request["memory"])
    return {"jax": jax.__version__, "backend": jax.default_backend()}


def _limit_memory(allowed: int) -> None:
    """Limit the data that this process may allocate from now on, in bytes.

    Not of addresses: what JAX and the allocator reserve and never use is many times what they use.
    """
    try:
        import resource

        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[5])
    except (ImportError, OSError):
        return  # unsupported here; the parent watches the resident size
    limit = pages * resource.getpagesize() + allowed
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


@effects.refused()
def _make(request: Reply) -> Reply:
    from . import unit_cases
    from .project import constructors

    unit = load_unit(request["module"], request["path"], request["qualname"])
    if not request["qualname"]:
        return _saved([("the module is imported", _called_with())], request["folder"])
    if unit.tests:
        prefix = request["qualname"].rpartition(".")[2]
        named = [(test[len(prefix) :].strip("_"), _called_with(test)) for test in unit.tests]
        return _saved([(n and "test " + n, case) for n, case in named], request["folder"])
    if unit.is_fixture and inspect.signature(unit.function).parameters:
        return {
            "cases": [],
            "detail": "it is a pytest fixture: pass --command with a command that runs pytest",
        }
    given = (constructors.records(), request["seconds"])
    with shim.policies_rejected():
        made = unit_cases.all_cases(unit, *given)
    if not made.cases and shim.policy_errors:
        # The policy is not among the arguments: the code itself is wrong about it.
        made = unit_cases.all_cases(unit, *given)
    cases = list(made.cases)
    for _, case in cases:
        case["left_out"] = unit_cases.left_out(unit.function, case)
    reply = _saved(cases, request["folder"])
    reply["stopped"] = made.stopped
    if not reply["cases"]:
        reply["detail"] = reply["detail"] or made.detail
    return reply


def _called_with(*tests: str) -> Dict[str, Any]:
    # The project's tests may do what they do.
    return {"args": tests, "kwargs": {}, "context": None, "asked_for": bool(tests)}


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


def _declare(request: Reply) -> Reply:
    from .inputs import declared

    cases = declared.read(request["file"], request["units"], request["known"])
    return {
        "units": {
            name: _saved(found, os.path.join(request["folder"], str(number)))
            for number, (name, found) in enumerate(sorted(cases.items()))
        }
    }


def _flip(request: Reply) -> Reply:
    """Save the cases of `flipped`."""
    from . import unit_cases

    case = pickling.load(request["case"])
    unit = load_unit(request["module"], request["path"], request["qualname"])
    return _saved(list(unit_cases.flipped(case, unit.function)), request["folder"])


def _evaluate(request: Reply) -> Reply:
    from . import unit_cases
    from .comparison import changes, described, evaluate, results

    unit = load_unit(request["module"], request["path"], request["qualname"])
    case = pickling.load(request["case"])
    case = unit_cases.with_own_defaults(unit.function, case)
    case = unit_cases.FORMS[request["form"]](unit.function, case)
    shapes = described.arrays_of(unit.function, case)
    changes.shared_names = frozenset(request["names"])
    with effects.refused(unless=case.get("asked_for")):
        failure, needs_constants = evaluate.evaluate(
            unit.function,
            case,
            request["folder"],
            request["derivatives"],
            request["first"],
            request["values"],
            request["variation"],
            request["constants"],
        )
    return {
        "failure": failure,
        "needs_constants": needs_constants,
        "fits": fits(unit.function, case["args"], case["kwargs"])
        and not failure.get("type", "").endswith(results.OtherParameters.__name__),
        "shapes": shapes,
        "settings": configuration.changed(request["path"]),
        "configures": configuration.is_set_by(request["path"], request["qualname"]),
    }


def _import(request: Reply) -> Reply:
    load_module(request["module"], request["path"])
    return {}


def _compare(request: Reply) -> Reply:
    from .comparison import compare
    from .program import agreement

    before, after = request["before"], request["after"]
    found = compare.compare(before, after, request["tolerances"], request["again"])
    program = agreement.agreement(before, after)
    dropped = program.detail if program.is_dropped else ""
    reply = dict(found._asdict(), program=program.state, difference="", dropped=dropped)
    if program.state == agreement.FAILS:
        reply.update(verdict=compare.FAILS_AFTER, detail=program.detail, failure=program.failure)
    if program.state == agreement.DIFFERS:
        reply["difference"] = program.detail
        if found.is_abstract:
            detail = "not the same program; %s" % found.detail
            reply.update(verdict=compare.DIFFERS, detail=detail)
    return reply


_ANSWERS = {
    "start": _start,
    "import": _import,
    "make": _make,
    "declare": _declare,
    "flip": _flip,
    "evaluate": _evaluate,
    "compare": _compare,
}
