"""The worker: a process that imports JAX, starts no backend, and forks for each unit.

A fork answers requests about its unit: lines of JSON on a socket. What the code under test prints
goes to a log file. What it raises becomes part of a reply. If it ends the process, the next request
gets another fork.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import json
import os
import signal
import socket
import sys
from typing import Any, Callable, Dict, List, NoReturn, Optional, Tuple

from . import computed, coverage, relocate, shim
from .environment import configuration, effects, ledger
from .environment import install as environment
from .failures import describe
from .load import NotFound, Unit, load_module, load_unit
from .lookup import fits
from .transfer import pickling

Reply = Dict[str, Any]

# Modules of this package that answers need.
_ANSWERING = (
    "unit_cases",
    "comparison.changes",
    "comparison.compare",
    "comparison.described",
    "comparison.evaluate",
    "project.constructors",
    "program.agreement",
)


def main() -> None:
    """Start, and then fork for each unit, until the tool is gone.

    A request with descriptors, a socket for requests and a file for what is printed, forks; the
    reply is the child's number. A request with such a number waits for its end.
    """
    control = socket.socket(fileno=int(os.environ.pop("REMAT_MIGRATE_CHANNEL").partition(",")[0]))
    # Processes that the code under test starts must not keep it open.
    control.set_inheritable(False)
    request = json.loads(_line(control))
    try:
        reply = _start(request)
    except BaseException as error:
        reply = {"error": describe(error)}
    control.sendall((json.dumps(dict(reply, number=request["number"])) + "\n").encode())
    gc.freeze()
    children = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 64, 2)
        if descriptors:
            number = os.fork()
            if not number:
                control.close()
                os.setsid()
                os.dup2(descriptors[1], 1)
                os.dup2(descriptors[1], 2)
                os.close(descriptors[1])
                # Before the project may set flags that this XLA does not know.
                sys.modules["jax"].devices()
                _limit_memory(request["memory"])
                _serve(descriptors[0])
            for descriptor in descriptors:
                os.close(descriptor)
            children.add(number)
        elif message:
            number = int(message)
            children.discard(number)
            number = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
        else:
            break
        control.sendall(b"%d\n" % number)
    for child in children:
        os.killpg(child, signal.SIGKILL)


def _line(channel: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        line += channel.recv(1 << 16)
    return line


def _serve(channel: int) -> NoReturn:
    """Answer requests until there are no more."""
    process = os.getpid()
    # The code under test may replace these functions.
    number, end, write, dumps = os.getpid, os._exit, os.write, json.dumps
    with os.fdopen(channel, encoding="utf-8") as requests:
        for line in requests:
            request = json.loads(line)
            reply = dict(_answer(request), number=request["number"])
            if number() != process:
                # The code under test has forked, and this is the child.
                end(0)
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            write(channel, (dumps(reply) + "\n").encode())
    end(0)


def _answer(request: Reply) -> Reply:
    running = False
    reply: Reply
    ledger.begin()
    try:
        if "qualname" in request:
            # Changes made by importing are part of the project's environment.
            load_unit(request["module"], request["path"], request["qualname"])
            configuration.apply(sys.modules["jax"], request["path"])
            running = True
            coverage.begin()
            computed.begin(request["qualname"])
        reply = _ANSWERS[request["do"]](request)
    except NotFound as error:
        reply = {"missing": str(error)}
    except BaseException as error:
        # SystemExit and KeyboardInterrupt in the code under test are failures, too.
        reply = {"error": describe(error), "running": running}
    if "qualname" in request:
        reply["environment"] = ledger.summary(request["path"])
    if running:
        reply["executed"] = coverage.report()
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
    for name in _ANSWERING:
        importlib.import_module("%s.%s" % (__package__, name))
    for name in request["libraries"]:
        with contextlib.suppress(Exception):  # the unit that imports it reports why
            importlib.import_module(name)
    found = _tried(jax.default_backend)
    return {"jax": jax.__version__} if found is None else {"error": found}


def _tried(function: Callable[[], object]) -> Optional[Dict[str, Any]]:
    """Return how a function fails in a fork of this process; None if it does not."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            function()
        except BaseException as error:
            os.write(write, json.dumps(describe(error)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        failure = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        os._exit(status if status > 0 else 128 - status)
    return dict(json.loads(failure)) if failure else None


def _limit_memory(allowed: int) -> None:
    """Limit the data that this process may allocate from now on, in bytes.

    Not of addresses: what JAX and the allocator reserve and never use is many times what they use.
    """
    if not allowed:
        return
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
    from . import module_state

    unit = load_unit(request["module"], request["path"], request["qualname"])
    if not request["qualname"]:
        case: Dict[str, Any] = {"args": (), "kwargs": {}, "context": None, "asked_for": False}
        return _saved([("the module is imported", case)], request["folder"])
    if unit.is_fixture and inspect.signature(unit.function).parameters:
        return {
            "cases": [],
            "detail": "it is a pytest fixture: pass --command with a command that runs pytest",
        }
    with module_state.restored(unit.function):
        return _made(unit, request)


def _made(unit: Unit, request: Reply) -> Reply:
    from . import unit_cases
    from .project import constructors

    made = unit_cases.all_cases(unit, constructors.records(), request["seconds"])
    cases = list(made.cases)
    for _, case in cases:
        case["left_out"] = unit_cases.left_out(unit.function, case)
    reply = _saved(cases, request["folder"])
    reply["stopped"] = made.stopped
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
            request["seed"],
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
    found = compare.compare(before, after, request["tolerances"])
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
