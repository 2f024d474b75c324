"""The measuring process: reads requests as lines of JSON from one pipe, replies on another.

Compiled programs, alternatives and jaxprs are separate requests, so that running out of memory on
one of them does not lose the earlier results.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import sys
import traceback
from typing import Any

from ...verify.worker.failures import describe
from ...verify.worker.load import NotFound

Reply = dict[str, Any]


class _Session:
    """What is being measured.

    Attributes:
        entry: function that was measured.
        measured: its measurement.
        flat: its flat jaxpr, once chains were requested.
        subject: which of the user's functions is running: `target` or `args`.
    """

    entry: Any = None
    measured: Any = None
    flat: Any = None
    subject: str = "target"


def main() -> None:
    """Answer requests until the pipe is closed."""
    incoming, outgoing = (int(n) for n in os.environ.pop("REMAT_MIGRATE_CHANNEL").split(","))
    for descriptor in (incoming, outgoing):
        os.set_inheritable(descriptor, False)
    with os.fdopen(incoming, encoding="utf-8") as requests:
        for line in requests:
            request = json.loads(line)
            reply = dict(_answer(request), number=request["number"])
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            os.write(outgoing, (json.dumps(reply, default=os.fspath) + "\n").encode())


def _answer(request: Reply) -> Reply:
    _Session.subject = "target"
    try:
        return _ANSWERS[request["do"]](request)
    except NotFound as error:
        return {"unfit": str(error), "of": _Session.subject}
    except BaseException as error:
        # Includes SystemExit and KeyboardInterrupt, which the user's code may raise.
        if type(error).__name__ in ("Unfit", "Unsupported"):
            return {"unfit": str(error), "of": _Session.subject}
        return {"error": dict(describe(error), at=_user_line(error)), "of": _Session.subject}


def _user_line(error: BaseException) -> list[Any] | None:
    """Return the innermost path and line of the user's code in a traceback, if any."""
    try:
        from .interception import is_library
    except ImportError:
        return None  # JAX is not installed
    found: list[Any] | None = None
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
    from .training import differentiation

    for name, value in request["flags"].items():
        if not internals().set_flag(name, value):
            raise Unsupported(f"jax {jax.__version__} has no flag {name}")
    internals().exclude(interception.OWN_FOLDER)
    interception.install()
    differentiation.install()
    libraries.install()
    compiled.choose_scheduler(jax.__version__)
    # Traces allocate many objects that live long; collecting them takes a quarter of the time.
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)
    return {"jax": jax.__version__, "backend": jax.default_backend()}


def _measure(request: Reply) -> Reply:
    import jax

    from . import inputs
    from .entry import Differentiation
    from .instruments.flops import draws_random_numbers
    from .training import gradients

    target, given = request["target"], request["args"]
    function = inputs.load_function(**target)
    if given is not None:
        _Session.subject = "args"
        args, kwargs = inputs.from_function(inputs.load_function(**given), given["qualname"])
    elif request["cases"] is not None:
        _Session.subject = "args"
        name = "{}.{}".format(target["module"] or "", target["qualname"])
        args, kwargs = inputs.from_cases(request["cases"], name)
    else:
        args, kwargs = inputs.without_arguments(function)
    _Session.subject = "target"
    how = Differentiation(
        request["by"], tuple(request["argnums"]), request["has_aux"], request["jit"]
    )
    entry, measured = gradients.measured(function, args, kwargs, how)
    _Session.entry, _Session.measured = entry, measured
    return {
        "grad": entry.how.by,
        "backend": jax.default_backend(),
        "is_random": draws_random_numbers(entry.forward_pass),
        "argument_bytes": entry.argument_bytes,
        "devices": entry.devices,
        "forward_flops": measured.forward_flops,
        "cost": measured.cost,
        "bare": measured.bare,
        "sites": measured.measurements,
    }


def _confirm(request: Reply) -> Reply:
    """Measure one site again, with the compiled program."""
    from . import sites

    number, measured = request["site"], _Session.measured
    site, measurement = measured.sites[number], measured.measurements[number]
    return {"site": sites.confirm(_Session.entry, site, measurement)}


def _compile(request: Reply) -> Reply:
    """Compile the program as it is."""
    from . import interception
    from .instruments.compiled import compiled

    with interception.plan({}):
        return compiled(_Session.entry, _Session.entry.differentiated)._asdict()


def _alternatives(request: Reply) -> Reply:
    """Measure the alternatives."""
    from .alternatives import measured, variants

    entry = _Session.entry
    rows, failed = [], []
    for one in variants(entry, bool(_Session.measured.sites), request["all"]):
        try:
            rows.append(measured(one, entry, request["compile"]))
        except Exception as error:
            failed.append([one.name, dict(describe(error), at=_user_line(error))])
    return {"alternatives": rows, "failed": failed}


def _cheaper(request: Reply) -> Reply:
    """Return a cheaper policy for all checkpoints, if there is one."""
    from .alternatives import cheaper_policy

    measured = _Session.measured
    return {"cheaper": cheaper_policy(_Session.entry, measured.cost, measured.bare)}


def _chains(request: Reply) -> Reply:
    """Return the chains of the function, with the costs of each stage."""
    from . import plan_costs
    from .entry import NONE
    from .training.gradients import flat_loss

    entry = _Session.entry
    _Session.flat = flat = flat_loss(entry)
    # The stages first, whose traces the whole gradient shares.
    chains = plan_costs.chains(entry, flat, offloading=request.get("offload", False))
    bare = plan_costs.trace(entry, flat, {})
    if entry.how.by == NONE:
        chains = [plan_costs.in_step(entry, flat, chain, bare) for chain in chains]
    return {
        "bare": bare,
        "equations": len(flat.jaxpr.eqns),
        "values": list(flat.values.values()),
        "chains": chains,
    }


def _trace(request: Reply) -> Reply:
    """Trace the gradient computation with checkpoints on runs of equations."""
    from . import plan_costs

    return {"need": plan_costs.trace(_Session.entry, _Session.flat, _runs(request))}


def _compile_runs(request: Reply) -> Reply:
    """Compile the gradient computation with checkpoints on runs of equations."""
    from . import plan_costs

    return {"bytes": plan_costs.compiled_bytes(_Session.entry, _Session.flat, _runs(request))}


def _runs(request: Reply) -> dict[Any, Any]:
    from .stage_costs import Kind

    return {(start, stop): Kind(kind, policy) for start, stop, kind, policy in request["runs"]}


def _residuals(request: Reply) -> Reply:
    from . import interception
    from .instruments.residuals import residuals

    with interception.plan({}):
        return {"residuals": residuals(_Session.entry)}


def _jaxprs(request: Reply) -> Reply:
    from . import interception
    from .instruments.residuals import passes

    with interception.plan({}):
        forward, backward = passes(_Session.entry)
    return {"forward": forward, "backward": backward}


def _program(request: Reply) -> Reply:
    """Save the program of the gradient computation, with its checkpoints dissolved.

    Loops in segments are another program, as they are planned.
    """
    import jax

    from ...verify.worker.program import agreement, trace
    from . import plan_costs
    from .training.gradients import flat_loss

    entry = _Session.entry
    program = entry.differentiated
    if segments := _runs(request):
        program = plan_costs.gradient_with(entry, flat_loss(entry), segments)

    def computed(arrays: list[Any]) -> list[Any]:
        leaves = jax.tree_util.tree_leaves(program(*arrays))
        return [jax.numpy.asarray(leaf) for leaf in leaves]

    traced = trace.programs(computed, entry.shapes, [], lambda source: "")
    agreement.save(request["folder"], {"": {"result": ["array"], "programs": traced}})
    return {}


_ANSWERS = {
    "start": _start,
    "measure": _measure,
    "confirm": _confirm,
    "compile": _compile,
    "alternatives": _alternatives,
    "cheaper": _cheaper,
    "chains": _chains,
    "trace": _trace,
    "compile_runs": _compile_runs,
    "residuals": _residuals,
    "jaxprs": _jaxprs,
    "program": _program,
}
