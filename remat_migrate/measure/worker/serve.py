"""The measuring process: requests as lines of JSON on one pipe, replies on another.

The function is traced once; what is asked afterwards (compiled programs, alternatives, pictures)
are requests of their own, so that one that takes all memory does not take what is known with it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import traceback
from typing import Any, Dict, List, Optional

from ...verify.worker.failures import describe
from ...verify.worker.load import NotFound

Reply = Dict[str, Any]


class _Session:
    """What is being measured, and which of the functions that the user named is at work."""

    entry: Any = None
    measured: Any = None
    # The function as operations one after the other, once chains are asked for.
    flat: Any = None
    of: str = "target"


def main() -> None:
    """Answer requests until there are no more."""
    incoming, outgoing = (int(n) for n in os.environ.pop("REMAT_MIGRATE_CHANNEL").split(","))
    for descriptor in (incoming, outgoing):
        os.set_inheritable(descriptor, False)
    with os.fdopen(incoming, encoding="utf-8") as requests:
        for line in requests:
            reply = _answer(json.loads(line))
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            os.write(outgoing, (json.dumps(reply) + "\n").encode())


def _answer(request: Reply) -> Reply:
    _Session.of = "target"
    try:
        return _ANSWERS[request["do"]](request)
    except NotFound as error:
        return {"unfit": str(error), "of": _Session.of}
    except BaseException as error:
        # SystemExit and KeyboardInterrupt of the code under test are failures of its own.
        if type(error).__name__ in ("Unfit", "Unsupported"):
            return {"unfit": str(error), "of": _Session.of}
        return {"error": dict(describe(error), at=_place(error)), "of": _Session.of}


def _place(error: BaseException) -> Optional[List[Any]]:
    """The innermost line of the user's in a traceback, None where there is none."""
    try:
        from .interception import is_library
    except ImportError:
        return None  # there is no JAX
    found: Optional[List[Any]] = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = frame.f_code.co_filename
        if not is_library(path):
            found = [path, line]
    return found


def _start(request: Reply) -> Reply:
    sys.path[:0] = request["paths"]
    sys.argv = ["remat-migrate"]
    jax = importlib.import_module("jax")
    from . import interception, libraries
    from .instruments import compiled
    from .internals import Unsupported, internals

    for name, value in request["flags"].items():
        if not internals().set_flag(name, value):
            raise Unsupported("jax %s has no flag %s" % (jax.__version__, name))
    internals().exclude(interception.OWN_FOLDER)
    interception.install()
    libraries.install()
    compiled.choose_scheduler(jax.__version__)
    return {"jax": jax.__version__, "backend": jax.default_backend()}


def _measure(request: Reply) -> Reply:
    from . import inputs, sites
    from .entry import Differentiation, Entry

    target, given = request["target"], request["args"]
    function = inputs.load_function(target["module"], target["path"], target["qualname"])
    _Session.of = "args"
    if given is not None:
        made = inputs.load_function(given["module"], given["path"], given["qualname"])
        args, kwargs = inputs.from_function(made, given["qualname"])
    elif request["cases"] is not None:
        args, kwargs = inputs.from_cases(request["cases"], _dotted(target))
    else:
        _Session.of = "target"
        args, kwargs = inputs.without(function)
    _Session.of = "target"
    how = Differentiation(
        request["by"], tuple(request["argnums"]), request["has_aux"], request["jit"]
    )
    _Session.entry = Entry(function, args, kwargs, how)
    _Session.measured = measured = sites.measure(_Session.entry)
    return {
        "forward_flops": measured.forward_flops,
        "cost": measured.cost._asdict(),
        "bare": measured.bare._asdict(),
        "sites": [_judged(judged) for judged in measured.sites],
        "courses": measured.courses,
    }


def _dotted(target: Dict[str, Any]) -> str:
    return "%s.%s" % (target["module"] or "", target["qualname"])


def _judged(judged: Any) -> Reply:
    site = judged.site
    return {
        "path": site.place.path,
        "line": site.place.line,
        "api": site.api,
        "function": site.function,
        "defined": list(site.defined),
        "calls": [
            [place.path, place.line, count] for place, count in judged.calls.items() if place.line
        ],
        "applications": judged.applications,
        "with": judged.with_it._asdict(),
        "without": judged.without._asdict(),
        "verdict": judged.verdict,
        "compiled": list(judged.compiled) if judged.compiled else None,
        "note": judged.note,
    }


def _confirm(request: Reply) -> Reply:
    """One site again, with what the compiled program says."""
    from . import sites

    judged = sites.confirmed(_Session.entry, _Session.measured.sites[request["site"]])
    return {"site": _judged(judged)}


def _compile(request: Reply) -> Reply:
    """Temporary memory of the compiled program as it is."""
    from . import interception
    from .instruments.compiled import compile_program

    with interception.plan({}):
        entry = _Session.entry
        compiled = compile_program(entry.differentiated, *entry.shapes)
    return {"bytes": compiled.temporary_bytes, "flops": compiled.flops}


def _alternatives(request: Reply) -> Reply:
    from . import alternatives

    sites = [judged.site for judged in _Session.measured.sites]
    found: List[Any] = alternatives.alternatives(
        _Session.entry, sites, request["compile"], request["stages_alone"]
    )
    return {"alternatives": [dict(one._asdict(), lines=list(one.lines)) for one in found]}


def _chains(request: Reply) -> Reply:
    """The chains of the function, each stage with what it keeps, needs and costs."""
    from . import plan_costs
    from .stages import Flat

    entry = _Session.entry
    plan_costs.check(entry)
    _Session.flat = flat = Flat(entry)
    return {
        "bare": plan_costs.trace(entry, flat, {})._asdict(),
        "chains": [
            {
                "path": chain.path,
                "function": chain.function,
                "links": [
                    dict(link._asdict(), choices=[choice._asdict() for choice in link.choices])
                    for link in plan_costs.links(entry, flat, chain)
                ],
            }
            for chain in plan_costs.chains(flat)
        ],
    }


def _trace(request: Reply) -> Reply:
    """The gradient computation with checkpoints on runs of operations."""
    from . import plan_costs
    from .stage_costs import Kind

    runs = {(start, stop): Kind(kind, policy) for start, stop, kind, policy in request["runs"]}
    return plan_costs.trace(_Session.entry, _Session.flat, runs)._asdict()


def _residuals(request: Reply) -> Reply:
    from . import interception
    from .instruments import residuals

    with interception.plan({}):
        found = residuals.residuals(_Session.entry)
    return {"residuals": [one._asdict() for one in found]}


def _pictures(request: Reply) -> Reply:
    from . import interception
    from .instruments import jaxprs

    with interception.plan({}):
        return dict(jaxprs.pictures(_Session.entry)._asdict())


_ANSWERS = {
    "start": _start,
    "measure": _measure,
    "confirm": _confirm,
    "compile": _compile,
    "alternatives": _alternatives,
    "chains": _chains,
    "trace": _trace,
    "residuals": _residuals,
    "pictures": _pictures,
}
