"""What each checkpoint of a program saves and costs: the program with it, and without it.

A checkpoint is judged by the peak of live memory of the gradient computation and by the operations
that it adds, not by the residuals that it avoids: one on the whole function avoids all of them, and
the peak stays.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import jax

from . import interception
from .applications import applications
from .calls import lines_of_calls
from .entry import NONE, Entry
from .instruments.compiled import compile_program
from .instruments.flops import flops
from .instruments.liveness import course, peak
from .instruments.residuals import gradient_and_kept_bytes
from .interception import COUNT, LEAVE_OUT, Place, Site

SAVES = "saves"
COSTS_MORE = "costs-more-than-it-saves"
NOTHING = "does-nothing"
WASTEFUL = "wasteful"

# Of the peak without a checkpoint: less than this is no difference.
PEAK_TOLERANCE = 0.02
# Of the operations of a forward pass: the same.
FLOPS_TOLERANCE = 0.005
# Of the temporary memory of a compiled program: what another order of the same computation may give
# or take, and so is no reason to keep a checkpoint.
LUCK = 0.1


class Cost(NamedTuple):
    """What a gradient computation needs.

    Attributes:
        peak_bytes: the peak of live bytes besides arguments.
        flops: floating-point operations.
        residual_bytes: what the forward pass keeps; None for a function that differentiates itself.
    """

    peak_bytes: int
    flops: int
    residual_bytes: Optional[int]


class Judged(NamedTuple):
    """A site with what it does.

    Attributes:
        site: the site.
        calls: the lines that call what it is applied to, with how often each is traced.
        applications: how often it is applied when the function runs once, loops counted.
        with_it: the whole function as it is.
        without: the same without this checkpoint.
        verdict: one of the four.
        compiled: temporary bytes of the compiled program with it and without it, if compiled.
        note: what else there is to know.
    """

    site: Site
    calls: Dict[Place, int]
    applications: int
    with_it: Cost
    without: Cost
    verdict: str
    compiled: Optional[Tuple[int, int]] = None
    note: str = ""


Course = List[Tuple[int, int]]


class Measured(NamedTuple):
    """A function with all its sites.

    Attributes:
        forward_flops: of the function itself, checkpoints not counted twice.
        cost: as it is.
        bare: without any checkpoint.
        sites: each site that is applied when it runs.
        courses: the bytes that are live over its operations, as it is and without checkpoints.
    """

    forward_flops: int
    cost: Cost
    bare: Cost
    sites: List[Judged]
    courses: Tuple[Course, Course]


def measure(entry: Entry) -> Measured:
    """Trace a function and its gradient, as they are and without each checkpoint.

    Raises:
        Unfit: the function cannot be differentiated as asked.
        Exception: whatever tracing it raises.
    """
    with interception.plan({}, COUNT):
        jaxpr = entry.forward_jaxpr()
        applied, forward = applications(jaxpr), flops(jaxpr)
        lines = lines_of_calls(jaxpr)
    cost, calls, program = _cost(entry, {})
    now = course(program)
    sites = [site for site in interception.sites() if site in calls]
    if not sites:
        return Measured(cost.flops if entry.how.by == NONE else forward, cost, cost, [], (now, now))
    bare, _, program = _cost(entry, dict.fromkeys(sites, LEAVE_OUT))
    without = (
        {sites[0]: bare}
        if len(sites) == 1
        else {site: _cost(entry, {site: LEAVE_OUT})[0] for site in sites}
    )
    courses = now, course(program)
    if entry.how.by == NONE:
        forward = bare.flops
    if not all(site in applied for site in sites):
        # Some stand in rules of differentiation, as the forward pass of a `jax.custom_vjp` does.
        with interception.plan({}, COUNT):
            applied = {**applications(entry.gradient_jaxpr()), **applied}
    judged = [
        Judged(
            site,
            {**dict.fromkeys(lines.get(site, ()), 0), **calls[site]},
            applied.get(site, 0),
            cost,
            without[site],
            verdict(cost, without[site], forward),
        )
        for site in sites
    ]
    return Measured(forward, cost, bare, judged, courses)


def cost_of(entry: Entry, decisions: Dict[Site, Any], default: Any = interception.KEEP) -> Cost:
    """What the function needs with other decisions about its checkpoints."""
    return _cost(entry, decisions, default)[0]


def _cost(
    entry: Entry, decisions: Dict[Site, Any], default: Any = interception.KEEP
) -> Tuple[Cost, Dict[Site, Dict[Place, int]], Any]:
    """What the function needs, the calls of each site, and the jaxpr of its gradient."""
    with interception.plan(decisions, default):
        jaxpr, kept = gradient_and_kept_bytes(entry)
        calls = {
            site: found for site in interception.sites() if (found := interception.calls_of(site))
        }
        return Cost(peak(jaxpr), flops(jaxpr), kept), calls, jaxpr


def verdict(with_it: Cost, without: Cost, forward_flops: int) -> str:
    """What a checkpoint does, by peak memory and operations alone."""
    saved = without.peak_bytes - with_it.peak_bytes
    added = with_it.flops - without.flops
    lowers = saved > PEAK_TOLERANCE * without.peak_bytes
    costs = added > FLOPS_TOLERANCE * forward_flops
    if not lowers:
        raises = -saved > PEAK_TOLERANCE * without.peak_bytes
        return WASTEFUL if costs or raises else NOTHING
    return _bargain(saved / max(without.peak_bytes, 1), added / max(without.flops, 1))


def _bargain(memory: float, operations: float) -> str:
    """Whether a share of memory that is saved is worth a share of operations that is added."""
    return COSTS_MORE if operations > max(memory, FLOPS_TOLERANCE) else SAVES


def confirmed(entry: Entry, judged: Judged) -> Judged:
    """A site that was found wasteful, with what the compiled program says about it.

    The compiled program alone sees what is fused, reordered and merged: a softmax over a large
    vocabulary at the end of a network is worth a checkpoint that liveness calls wasteful.
    """
    with_it = _temporary(entry, {})
    without = _temporary(entry, {judged.site: LEAVE_OUT})
    saved = (without - with_it) / max(without, 1)
    if saved > LUCK and judged.verdict in (WASTEFUL, NOTHING):
        before = judged.without.flops
        return judged._replace(
            compiled=(with_it, without),
            verdict=_bargain(saved, (judged.with_it.flops - before) / max(before, 1)),
            note="what it saves shows in the compiled program alone",
        )
    note = judged.note
    if saved <= PEAK_TOLERANCE and judged.verdict in (SAVES, COSTS_MORE):
        note = (
            "compiled for %s the program needs no less memory with it: it may be merged away"
            % jax.default_backend()
        )
    return judged._replace(compiled=(with_it, without), note=note)


def _temporary(entry: Entry, decisions: Dict[Site, Any]) -> int:
    with interception.plan(decisions):
        return compile_program(entry.differentiated, *entry.shapes).temporary_bytes
