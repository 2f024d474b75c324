"""What a measuring process answers about its target: a function for each kind of request."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any
from unittest import mock

import jax

from ...verify.worker.program import agreement
from ...verify.worker.program.trace import programs
from . import alternatives as placements
from . import gradients, inputs, interception, names, plan_costs, sites
from .entry import NONE, Differentiation
from .instruments import residuals as passes
from .instruments.compiled import compiled
from .instruments.flops import draws_random_numbers
from .kinds import Kind
from .records import SiteVerdict
from .segments import scan_in_segments

Reply = dict[str, Any]
# Start, stop, kind and policy of a checkpoint on a run of equations.
Runs = Sequence[tuple[int, int, str, str | None]]


class _Session:
    """What is being measured.

    Attributes:
        function: the target.
        arguments: its arguments.
        entry: the target with its arguments, once it was measured.
        measured: its measurement.
        flat: its flat jaxpr, once chains were requested.
    """

    function: Any = None
    arguments: inputs.Arguments = (), {}
    entry: Any = None
    measured: Any = None
    flat: Any = None


def load(**target: str) -> Reply:
    """Load the target."""
    _Session.function = inputs.load_function(**target)
    return {}


def arguments(function: Reply | None, cases: str | None, name: str) -> Reply:
    """Find the arguments: those that a function returns, or those of a file of cases."""
    if function is not None:
        made = inputs.from_function(inputs.load_function(**function), function["qualname"])
    elif cases is not None:
        made = inputs.from_cases(cases, name)
    else:
        made = inputs.without_arguments(_Session.function)
    _Session.arguments = made
    return {}


def measure(by: str, argnums: Sequence[int], has_aux: bool) -> Reply:
    """Measure the target as it is."""
    how = Differentiation(by, tuple(argnums), has_aux)
    entry, measured = gradients.measured(_Session.function, *_Session.arguments, how)
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


def confirm(are_all: bool) -> Reply:
    """Compile the target as it is and without each site, or only sites that look wasteful."""
    reply: Reply = {}
    if are_all:
        whole = compile_target()
        reply = {"compiled_bytes": whole["temporary"], "needed_compiled": whole["needed"]}
    measured = _Session.measured
    rows = [
        sites.confirm(_Session.entry, site, one)
        if are_all or one.verdict is SiteVerdict.WASTEFUL
        else one
        for site, one in zip(measured.sites, measured.measurements)
    ]
    return {**reply, "sites": rows}


def compile_target() -> Reply:
    """Compile the program as it is."""
    with interception.plan({}):
        return compiled(_Session.entry)._asdict()


def explain() -> Reply:
    """Explain what each name and each policy saves."""
    found, policies = names.explained(_Session.entry)
    return {"names": found, "policies": policies}


def alternatives(compiling: bool | None, are_all: bool) -> Reply:
    """Measure the alternatives."""
    entry, rows, failed = _Session.entry, [], []
    for one in placements.variants(entry, bool(_Session.measured.sites), are_all):
        try:
            rows.append(placements.measured(one, entry, compiling))
        except Exception as error:
            failed.append([one.name, error])
    return {"alternatives": rows, "failed": failed}


def chains() -> Reply:
    """Return the chains of the function, with the costs of each stage."""
    entry = _Session.entry
    _Session.flat = flat = gradients.flat_loss(entry)
    # The stages first, whose traces the whole gradient shares.
    found = plan_costs.chains(flat)
    bare = plan_costs.trace(entry, flat, {})
    if entry.how.by == NONE:
        found = [plan_costs.in_step(entry, flat, chain, bare) for chain in found]
    values = list(flat.values.values())
    return {"bare": bare, "equations": len(flat.jaxpr.eqns), "values": values, "chains": found}


def trace(runs: Runs) -> Reply:
    """Trace the gradient computation with checkpoints on runs of equations."""
    return {"cost": plan_costs.trace(_Session.entry, _Session.flat, _kinds(runs))}


def compile_runs(runs: Runs) -> Reply:
    """Compile the gradient computation with checkpoints on runs of equations."""
    run = gradients.checkpointed(_Session.entry, _Session.flat, _kinds(runs))
    return {"bytes": compiled(_Session.entry, run).peak}


def _kinds(runs: Runs) -> dict[tuple[int, int], Kind]:
    return {(start, stop): Kind(kind, policy) for start, stop, kind, policy in runs}


def residuals() -> Reply:
    """List the residuals."""
    with interception.plan({}):
        return {"residuals": passes.residuals(_Session.entry)}


def jaxprs() -> Reply:
    """Return the forward and the backward pass as text."""
    with interception.plan({}):
        forward, backward = passes.passes(_Session.entry)
    return {"jaxprs": (forward, backward)}


@contextlib.contextmanager
def _plain_scans() -> Iterator[None]:
    """Run what `plan --apply` wrote in segments as plain scans."""

    def plain(*arguments: Any, sizes: Sequence[int], **options: Any) -> Any:
        return jax.lax.scan(*arguments, **options)

    name, signature = scan_in_segments.__name__, inspect.signature(scan_in_segments)
    with interception.plan({}, interception.KEEP), contextlib.ExitStack() as patches:
        for module in list(sys.modules.values()):
            found = getattr(module, "__dict__", {}).get(name)
            if isinstance(found, FunctionType) and found is not scan_in_segments:
                if inspect.signature(found) == signature:
                    patches.enter_context(mock.patch.object(module, name, plain))
        yield


def program(folder: str) -> Reply:
    """Save the program of the gradient computation, with its checkpoints and segments dissolved."""
    entry = _Session.entry

    def computed(arrays: list[Any]) -> list[Any]:
        found = entry.differentiated(*arrays)
        return list(map(jax.numpy.asarray, jax.tree_util.tree_leaves(found)))

    with _plain_scans():
        traced = programs(computed, entry.shapes, [], lambda source: "")
    agreement.save(folder, {"": {"result": ["array"], "programs": traced}})
    return {}
