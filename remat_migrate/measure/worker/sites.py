"""Measure each checkpoint of a program, by tracing the program with and without it.

The verdict rests on the peak of live bytes of the gradient computation and on the operations that
the checkpoint adds. Avoided residuals do not count: a checkpoint of the whole function avoids all
of them, but the peak stays the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import jax

from . import interception
from .applications import applications
from .entry import NONE, Entry
from .instruments.compiled import compiled
from .instruments.flops import flops
from .instruments.residuals import cost_and_jaxpr
from .interception import COUNT, KEEP, LEAVE_OUT, Decision, Site
from .records import REMOVABLE, CallLine, Cost, SiteMeasurement, SiteVerdict

# Smaller shares of the peak without a checkpoint count as no difference.
PEAK_TOLERANCE = 0.02
# Likewise for shares of the operations of a forward pass.
FLOPS_TOLERANCE = 0.005
# The temporary memory of a compiled program may vary by this share with the order of operations.
SCHEDULE_TOLERANCE = 0.05


class Measured(NamedTuple):
    """A measured function.

    Attributes:
        forward_flops: operations of the function without recomputation.
        cost: cost of the gradient computation as it is.
        bare: cost without any checkpoint.
        sites: sites that are applied when the function runs.
        measurements: the measurement of each of them.
    """

    forward_flops: int
    cost: Cost
    bare: Cost
    sites: list[Site]
    measurements: list[SiteMeasurement]


def measure(entry: Entry) -> Measured:
    """Trace a function and its gradient, as they are and without each checkpoint.

    Raises:
        Unfit: the function cannot be differentiated as requested.
        Exception: any error that the function raises while it is traced.
    """
    with interception.plan({}, COUNT):
        entry.forward_pass = jaxpr = entry.forward_jaxpr()
        applied, forward = applications(jaxpr), flops(jaxpr)
    cost = trace(entry, {})
    calls = {site: found for site in interception.sites() if (found := interception.calls_of(site))}
    if not calls:
        forward = cost.flops if entry.how.by == NONE else forward
        return Measured(forward, cost, cost, [], [])
    sites = list(calls)
    bare = trace(entry, {}, LEAVE_OUT)
    if len(sites) == 1:
        without = {sites[0]: bare}
    else:
        without = {site: trace(entry, {site: LEAVE_OUT}) for site in sites}
    if entry.how.by == NONE:
        forward = bare.flops
    if not all(site in applied for site in sites):
        # Some sites are in differentiation rules, such as the forward pass of a `jax.custom_vjp`.
        with interception.plan({}, COUNT):
            applied = {**applications(entry.gradient_jaxpr()[1]), **applied}
    measurements = [
        SiteMeasurement(
            Path(site.location.path),
            site.location.line,
            site.api,
            site.function,
            tuple(CallLine(Path(p.path), p.line, n) for p, n in calls[site].items() if p.line),
            applied.get(site, 0),
            cost,
            without[site],
            verdict(cost, without[site], forward),
        )
        for site in sites
    ]
    # Two nested checkpoints do nothing beside each other, but without both, all residuals are kept.
    removable = {site: one for site, one in zip(sites, measurements) if one.is_removable}
    together = trace(entry, dict.fromkeys(removable, LEAVE_OUT)) if len(removable) > 1 else cost
    if verdict(cost, together, forward) not in REMOVABLE:
        places = [(one.path, one.line) for one in removable.values()]
        measurements = [
            one._replace(rivals=tuple(place for place in places if place != (one.path, one.line)))
            if one.is_removable
            else one
            for one in measurements
        ]
    return Measured(forward, cost, bare, sites, measurements)


def trace(entry: Entry, decisions: dict[Site, Decision], default: Decision = KEEP) -> Cost:
    """Trace the gradient computation with other decisions about its checkpoints."""
    with interception.plan(decisions, default):
        return cost_and_jaxpr(entry)[0]


def verdict(cost: Cost, without: Cost, forward_flops: int) -> SiteVerdict:
    """Return the verdict on a checkpoint by peak memory and operations alone."""
    saved = without.peak_bytes - cost.peak_bytes
    added = cost.flops - without.flops
    significant = PEAK_TOLERANCE * without.peak_bytes
    if saved > significant:
        return _trade_off(saved / max(without.peak_bytes, 1), added / max(without.flops, 1))
    is_wasteful = added > FLOPS_TOLERANCE * forward_flops or -saved > significant
    return SiteVerdict.WASTEFUL if is_wasteful else SiteVerdict.NOTHING


def _trade_off(memory: float, operations: float) -> SiteVerdict:
    """Weigh the share of memory saved against the share of operations added."""
    costs_more = operations > max(memory, FLOPS_TOLERANCE)
    return SiteVerdict.COSTS_MORE if costs_more else SiteVerdict.SAVES


def confirm(entry: Entry, site: Site, measurement: SiteMeasurement) -> SiteMeasurement:
    """Revise the verdict on a checkpoint by the compiled program.

    Only the compiled program accounts for fusion, scheduling and merged operations. For example, a
    checkpoint of a softmax over a large vocabulary at the end of a network pays, although it does
    not lower the peak of the trace.
    """
    with_it, without = _compiled(entry, {}), _compiled(entry, {site: LEAVE_OUT})
    measurement = measurement._replace(compiled=(with_it, without))
    saved = (without - with_it) / max(without, 1)
    saves_in_trace = measurement.verdict in (SiteVerdict.SAVES, SiteVerdict.COSTS_MORE)
    if saved > SCHEDULE_TOLERANCE and not saves_in_trace:
        added = measurement.recomputed_flops / max(measurement.without.flops, 1)
        return measurement._replace(
            verdict=_trade_off(saved, added),
            note="the savings only show in the compiled program",
        )
    if saved <= PEAK_TOLERANCE and saves_in_trace:
        return measurement._replace(
            note=f"compiled for {jax.default_backend()}, the program needs no less memory with it:"
            " XLA may merge the recomputation with the forward pass"
        )
    return measurement


def _compiled(entry: Entry, decisions: dict[Site, Decision]) -> int:
    with interception.plan(decisions):
        return compiled(entry).temporary
