"""Plan checkpoints: measure the stages of a target, solve its chains, trace the placements.

The obvious placements are candidates, too. With `compile`, the compiled programs decide instead of
the traces.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import VerificationError
from ..measure.options import MeasureOptions
from ..measure.session import Session, compiling, measuring
from ..measure.target import Target
from ..measure.worker.records import NamedValue, Need
from .budget import Budget
from .chain import Arc, Place, chain_from
from .compiling import compiled_candidates
from .plan import MERGED, Obstacle, Placement, Plan
from .planner import EQUAL, Gradient, Planner

if TYPE_CHECKING:
    from .applying import Source

# Promised FLOPs and peaks are exact to these shares.
_EXACT, _NEAR = 1.01, 1.25
# Seconds that compiling may take unless it was asked for, and the placements that must fit in.
_SECONDS, _LEAST = 60.0, 4
_SECONDS_PER_EQUATION = 0.001
# Placements to fall back on, if writing the best one turns out to be wrong.
_OTHERS = 3

OpenSource = Callable[[Sequence[tuple[Path, int]], Collection[Path], Mapping[str, Place]], "Source"]


def plan(
    target: Target,
    options: MeasureOptions,
    folder: Path,
    budget: Budget,
    *,
    pareto: bool = False,
    offload: bool = False,
    open_source: OpenSource | None = None,
) -> Plan:
    """Return the cheapest placement of checkpoints within a budget.

    Args:
        target: the function that is differentiated.
        options: how to measure it; with `compile`, the best candidates are compiled, and if it is
            None, as many of them as take less than a minute.
        folder: the folder that names in the options are relative to.
        budget: how much memory it may use.
        pareto: whether to return the Pareto front, too.
        offload: whether policies may offload values to host memory.
        open_source: opens the source, given the files and lines of its current checkpoints, and
            the files of all stages. The placement is then one that can be written into it.

    Raises:
        VerificationError: the target cannot be measured, or has no stages to checkpoint.
    """
    with measuring(target, options, folder) as session:
        return planned(
            session,
            options,
            budget,
            pareto=pareto,
            offload=offload,
            open_source=open_source,
        )


def planned(
    session: Session,
    options: MeasureOptions,
    budget: Budget,
    *,
    pareto: bool = False,
    offload: bool = False,
    open_source: OpenSource | None = None,
) -> Plan:
    """Return the cheapest placement for a measured target, see `plan`."""
    found = session.measurement
    options, target = compiling(options, found), session.target
    reply = session.ask("chains", offload=offload)
    chains = [chain_from(data) for data in reply["chains"]]
    if not chains:
        raise VerificationError(
            f"{target.text}: nothing to checkpoint: none of its functions runs several stages"
            " in sequence or a loop over layers"
        )
    bare, now = Need(*reply["bare"]), Need(found.cost.peak_bytes, found.cost.flops)
    values = [NamedValue(name, Path(path), *more) for name, path, *more in reply["values"]]
    gradient = Gradient(
        bare,
        session.ask,
        math.inf if options.compile else _SECONDS,
    )
    compiles = options.compile
    if compiles is None:
        compiles = reply["equations"] * _SECONDS_PER_EQUATION * _LEAST <= _SECONDS
    reached = bare.peak_bytes
    if compiles:
        reached = gradient.compiled(())
        # A placement takes about as long as the program without checkpoints.
        if not gradient.can_compile(_LEAST - 1):
            compiles, reached = False, bare.peak_bytes
    arguments = 0 if found.is_step else found.argument_bytes
    limit = budget.bytes_of(reached, arguments)
    # A share of the compiled peak is planned as the same share of the traced peak.
    aim = limit * bare.peak_bytes // max(reached, 1)

    places = [link.place for chain in chains for link in chain.links if link.heavy]
    files = {Path(path) for path, _, _ in places}

    def candidates_of(
        planners: Sequence[Planner], *others: Placement
    ) -> tuple[list[Placement], tuple[Placement, ...]]:
        """Return the traced placements, with `others`, and the compiled ones among them."""
        tried = _solved(planners, aim)
        every = pareto or bool(compiles)
        tried += _obvious(gradient, planners, tried, aim, every=every)
        tried += others
        if not compiles:
            return tried, ()
        return tried, compiled_candidates(
            tried, limit, aim, gradient, lambda aim: _solved(planners, aim)
        )

    planners = [Planner(chain, gradient) for chain in chains]
    tried, candidates = candidates_of(planners)
    is_merged = bool(compiles) and not options.compile and _are_merged(candidates, reached)
    if is_merged:
        compiles = False
        limit = aim = budget.bytes_of(bare.peak_bytes, arguments)
        tried, candidates = candidates_of(planners, *tried)
    best, is_met = best_of(candidates or tried, limit)
    sites = tuple((site.path, site.line) for site in found.sites)
    ideal: Placement | None = None
    obstacles: tuple[Obstacle, ...] = ()
    others: tuple[Placement, ...] = ()
    if open_source is not None:
        source = open_source(sites, files, {one.name: one.place for one in values})
        obstacles = source.apply(best.stages).obstacles
        if obstacles:
            ideal = best
            planners = [Planner(chain, gradient, source) for chain in chains]
            writable = [one for one in tried if not source.apply(one.stages).obstacles]
            tried, candidates = candidates_of(planners, *writable)
            best, is_met = _best_writable(candidates or tried, limit, source) or (best, is_met)
            if best is ideal or (is_met and _is_as_good(best, ideal)):
                ideal = None
        others = _next_best(candidates or tried, best, limit)
    front: tuple[Placement, ...] = ()
    if pareto:
        paths = [(each, *one) for each in planners for one in each.front()]
        front = _front([*tried, *_traced(gradient, paths)])
    return Plan(
        target=target.text,
        jax=found.jax,
        backend=found.backend,
        budget=budget.text,
        budget_bytes=limit,
        bare=bare,
        now=now,
        checkpoints=len(found.sites),
        best=best,
        is_met=is_met,
        pareto=front,
        sites=sites,
        tried=gradient.tried,
        is_merged=is_merged,
        bare_compiled=reached if compiles else None,
        candidates=candidates,
        unwritten=ideal,
        obstacles=obstacles,
        others=others,
        values=saved_by(best, values),
        argument_bytes=found.argument_bytes,
        is_step=found.is_step,
        devices=found.devices,
        device=found.device,
    )


def _best_writable(
    tried: Sequence[Placement], limit: int, source: Source
) -> tuple[Placement, bool] | None:
    """Return the best placement that can be written as a whole, see `best_of`."""
    left = list(tried)
    while left:
        best, is_met = best_of(left, limit)
        if not source.apply(best.stages).obstacles:
            return best, is_met
        left = [one for one in left if one.runs != best.runs]
    return None


def saved_by(placement: Placement, values: Sequence[NamedValue]) -> tuple[NamedValue, ...]:
    """Return the values that the policies of a placement name."""
    policies = " ".join(stage.policy or "" for stage in placement.stages)
    return tuple(one for one in values if f'"{one.name}"' in policies)


def _are_merged(candidates: Sequence[Placement], bare: int) -> bool:
    """Return whether checkpoints do not matter to the compiler, as for some programs on the CPU.

    XLA then merges every recomputation with the forward pass.
    """
    return all(one.peak > MERGED * bare for one in candidates)


def _is_as_good(one: Placement, other: Placement) -> bool:
    """Return whether a placement needs about as little as another."""
    return one.measured.flops <= _EXACT * other.measured.flops and one.peak <= _EXACT * other.peak


def _next_best(tried: Sequence[Placement], best: Placement, limit: int) -> tuple[Placement, ...]:
    """Return some placements within the budget besides the best, the cheapest first."""
    distinct = {one.runs: one for one in tried if one.peak <= limit and one.runs != best.runs}
    ordered = sorted(distinct.values(), key=lambda one: (one.measured.flops, one.peak))
    return tuple(ordered[:_OTHERS])


def _solved(planners: Sequence[Planner], limit: int) -> list[Placement]:
    """Return placements of all chains, except chains that cannot be cheaper than those found."""
    found: list[Placement] = []
    for planner in sorted(planners, key=lambda each: each.least(limit)):
        if found:
            best, is_met = best_of(found, limit)
            if is_met and planner.least(limit) >= best.measured.flops:
                continue
        found += planner.within(limit)
    return found


def _obvious(
    gradient: Gradient,
    planners: Sequence[Planner],
    tried: Sequence[Placement],
    limit: int,
    *,
    every: bool,
) -> list[Placement]:
    """Return the obvious placements: every one, or those that may be better than those tried."""
    best, is_met = best_of(tried, limit)

    def is_wanted(need: Need) -> bool:
        if every or not is_met:
            return True
        return need.peak_bytes <= _NEAR * limit and need.flops <= _EXACT * best.measured.flops

    paths = [(each, *one) for each in planners for one in each.obvious(is_wanted)]
    return _traced(gradient, paths)


def _traced(
    gradient: Gradient, paths: Sequence[tuple[Planner, str, tuple[Arc, ...]]]
) -> list[Placement]:
    """Return the traced placements of named paths."""
    return [planner.placement(path, name) for planner, name, path in paths]


def best_of(tried: Sequence[Placement], limit: int) -> tuple[Placement, bool]:
    """Return the cheapest placement within the budget, or else the lowest, and which it is.

    Of placements that are about as good, this is the one with the simplest source. The peak is that
    of the compiled program where there is one.
    """
    within = [one for one in tried if one.peak <= limit]
    least = min((one.measured.flops for one in within), default=0)
    cheap = [one for one in within if one.measured.flops <= EQUAL * least]
    best = min(cheap or tried, key=lambda one: (one.peak, one.measured.flops))
    similar = [one for one in within or tried if _is_as_good(one, best)]
    order = operator.attrgetter("parts", "measured.flops", "peak")
    return min(similar, key=order), bool(within)


def _front(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """Return the Pareto front, the lowest peak first."""
    front: list[Placement] = []
    for one in sorted(placements, key=lambda one: (one.measured.peak_bytes, one.measured.flops)):
        if not front or one.measured.flops < front[-1].measured.flops:
            front.append(one)
    return tuple(front)
