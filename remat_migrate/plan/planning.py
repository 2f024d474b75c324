"""Plan checkpoints: measure the stages of a target, solve its chains, trace the placements.

The expected cost of a placement is the sum of its stages; the whole gradient is then traced with
it. Where the two differ, the chain is solved again for as much less or more memory. The obvious
placements are candidates, too. With `compile`, the compiled
programs decide instead of the traces, and the chain is solved again where they disagree: a compiled
program can need several times what its trace promises.
"""

from __future__ import annotations

import functools
import math
import operator
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import VerificationError
from ..measure.devices import Budget
from ..measure.options import MeasureOptions
from ..measure.session import compiling, decoded, measuring
from ..measure.target import Target
from ..measure.worker.records import Chain, Cost, NamedValue
from .chain import Allows, Arc, Place, Run, arcs, promise, runs_of
from .obvious import obvious_paths
from .plan import Obstacle, Placement, Plan, decisions
from .solve import Solver

if TYPE_CHECKING:
    from .applying import Source

_ROUNDS = 6
# The factor by which a budget must shrink for the next plan to differ.
_STEP = 0.995
# FLOPs that differ by less than this share are about equal.
_EQUAL = 1.001
# Costs that differ by less than this share are about the same.
_EXACT = 1.01
# Seconds that compiling may take unless it was asked for, and the placements that must fit in.
_SECONDS, _LEAST = 60.0, 4
_SECONDS_PER_EQUATION = 0.001
# Placements to fall back on, if writing the best one turns out to be wrong.
_OTHERS = 3

# The solved and the obvious placements that are compiled first, and further solutions.
_SOLVED, _OBVIOUS, _AGAIN = 3, 8, 3
# A compiled peak between this share of the budget and the budget is not improved further.
_CLOSE = 0.9

OpenSource = Callable[[Sequence[tuple[Path, int]], Collection[Path], Mapping[str, Place]], "Source"]


class Gradient:
    """The gradient computation of the target, traced and compiled once for each placement.

    Attributes:
        bare: its cost without checkpoints.
        compiles: whether compiled programs decide, rather than traces.
        traced: returns the cost with checkpoints on runs of equations.
        compiled: returns the bytes of the compiled program besides its inputs, likewise.
    """

    def __init__(self, bare: Cost, asked: Callable[..., Any], seconds: float = math.inf) -> None:
        """Remember how to ask the measuring process, and the time that compiling may take."""
        self.bare, self.compiles = bare, False
        self._asked, self._seconds, self._longest = asked, seconds, 0.0
        self.traced = functools.cache(self._traced)
        self.compiled = functools.cache(self._compiled)
        self.traced(())

    def can_compile(self, count: int) -> bool:
        """Return whether there is time to compile some more placements."""
        return count * self._longest <= self._seconds

    @property
    def reached(self) -> int:
        """The peak without checkpoints."""
        return self.compiled(()) if self.compiles else self.bare.peak_bytes

    def _traced(self, runs: tuple[Run, ...]) -> Cost:
        return Cost(*self._asked("trace", runs=runs)["cost"]) if runs else self.bare

    def _compiled(self, runs: tuple[Run, ...]) -> int:
        start = time.monotonic()
        found: int = self._asked("compile_runs", runs=runs)["bytes"]
        took = time.monotonic() - start
        self._longest = max(self._longest, took)
        self._seconds -= took
        return found


class Planner:
    """Solves one chain for budgets and traces the placements."""

    def __init__(self, chain: Chain, gradient: Gradient, allows: Allows | None = None) -> None:
        """Plan for a chain; only what can be written, if that is known."""
        self._chain, self._gradient = chain, gradient
        self._arcs = arcs(chain, allows)
        self._solver = Solver(chain, self._arcs)

    def within(self, limit: int, most: float) -> list[Placement]:
        """Return the placements tried for a budget, which are expected to take at most some FLOPs.

        Their traces correct what the chain is solved for.
        """
        tried: dict[tuple[Run, ...], Placement] = {}
        aim = limit
        for _ in range(_ROUNDS):
            # The placement with the lowest peak may need less than expected.
            path = self._frugal(self._solver.solve(aim) or self._solver.lowest)
            if self._promise(path).flops > most:
                break
            one = self.placement(path)
            if one.runs in tried:
                break
            tried[one.runs] = one
            aim = limit + one.promised.peak_bytes - one.measured.peak_bytes
        return list(tried.values())

    def _frugal(self, path: tuple[Arc, ...]) -> tuple[Arc, ...]:
        """Return a path that needs less memory for about the same FLOPs, if there is one."""
        most = _EQUAL * self._promise(path).flops
        for _ in range(_ROUNDS):
            lower = self._solver.solve(int(_STEP * promise(path).peak_bytes))
            if lower is None or self._promise(lower).flops > most:
                break
            path = lower
        return path

    def obvious(self, most: float) -> Iterator[Placement]:
        """Yield the obvious placements that are expected to take at most some FLOPs."""
        for name, path in obvious_paths(self._chain, self._arcs):
            if self._promise(path).flops <= most:
                yield self.placement(path, name)

    def _promise(self, path: tuple[Arc, ...]) -> Cost:
        return promise(path, self._gradient.bare.flops)

    def placement(self, path: tuple[Arc, ...], name: str = "") -> Placement:
        """Return the traced placement of a path."""
        runs = runs_of(self._chain, path)
        measured = self._gradient.traced(runs)
        return Placement(decisions(self._chain, path), self._promise(path), measured, runs, name)


def plan(
    target: Target,
    options: MeasureOptions,
    folder: Path,
    budget: Budget,
    *,
    open_source: OpenSource | None = None,
) -> Plan:
    """Return the cheapest placement of checkpoints within a budget.

    Args:
        target: the function that is differentiated.
        options: how to measure it; with `compile`, the best candidates are compiled, and if it is
            None, as many of them as take less than a minute.
        folder: the folder that names in the options are relative to.
        budget: how much memory it may use.
        open_source: opens the source, given the files and lines of its current checkpoints, and
            the files of all stages. The placement is then one that can be written into it.

    Raises:
        VerificationError: the target cannot be measured, or has no stages to checkpoint.
    """
    with measuring(target, options, folder) as session:
        found = session.measurement
        options = compiling(options, found)
        reply = session.ask("chains")
        chains = decoded(tuple[Chain, ...], reply["chains"])
        if not chains:
            raise VerificationError(
                f"{target.text}: nothing to checkpoint: none of its functions runs several stages"
                " in sequence or a loop over layers"
            )
        seconds = math.inf if options.compile else _SECONDS
        gradient = Gradient(Cost(*reply["bare"]), session.ask, seconds)
        gradient.compiles = bool(options.compile)
        if options.compile is None and (
            reply["equations"] * _SECONDS_PER_EQUATION * _LEAST <= _SECONDS
        ):
            gradient.compiled(())
            # A placement takes about as long as the program without checkpoints.
            gradient.compiles = gradient.can_compile(_LEAST - 1)
        search = _Search([Planner(chain, gradient) for chain in chains], gradient)
        limits = functools.partial(
            budget.bytes_of, arguments=0 if found.is_step else found.argument_bytes
        )
        search.run(limits(gradient.reached))
        limit = limits(gradient.reached)
        best, is_met = best_of(search.found, limit)
        ideal: Placement | None = None
        obstacles: tuple[Obstacle, ...] = ()
        values = decoded(tuple[NamedValue, ...], reply["values"])
        if open_source is not None:
            files = {Path(link.path) for chain in chains for link in chain if link.heavy}
            sites = [(site.path, site.line) for site in found.sites]
            source = open_source(sites, files, {one.name: one.place for one in values})
            obstacles = source.apply(best.stages).obstacles
            if obstacles:
                ideal = best
                search.planners = [Planner(chain, gradient, source.allows) for chain in chains]
                writable = [one for one in search.tried if not source.apply(one.stages).obstacles]
                search.run(limit, writable)
                best, is_met = search.best_writable(limit, source) or (best, is_met)
                if best is ideal or (_is_as_good(best, ideal) and (is_met or ideal.peak > limit)):
                    ideal = None
        now = gradient.compiles and found.sites and session.ask("compile_target")["peak"]
        return Plan(
            found,
            budget.text,
            limit,
            gradient.bare,
            best,
            is_met,
            tried=gradient.traced.cache_info().currsize - 1,
            bare_compiled=gradient.reached if gradient.compiles else None,
            now_compiled=now or None,
            candidates=search.candidates,
            unwritten=ideal,
            obstacles=obstacles,
            others=search.next_best(limit, best),
            values=saved_by(best, values),
        )


class _Search:
    """The placements that are tried for a budget.

    Attributes:
        planners: one for each chain.
        tried: the traced placements.
        candidates: the compiled ones, the lowest peak first.
    """

    def __init__(self, planners: Sequence[Planner], gradient: Gradient) -> None:
        self.planners, self._gradient = planners, gradient
        self.tried: list[Placement] = []
        self.candidates: tuple[Placement, ...] = ()

    @property
    def found(self) -> Sequence[Placement]:
        """The placements to choose from."""
        return self.candidates or self.tried

    def run(self, limit: int, others: Sequence[Placement] = ()) -> None:
        """Try placements for a budget, besides some others that were traced."""
        # A share of the compiled peak is planned as the same share of the traced peak.
        aim = limit * self._gradient.bare.peak_bytes // max(self._gradient.reached, 1)
        self.tried = [*self._solved(aim), *others]
        most = math.inf if self._gradient.compiles else _interesting(self.tried, aim)
        self.tried += [one for each in self.planners for one in each.obvious(most)]
        self.candidates = ()
        if self._gradient.compiles:
            self.candidates = compiled_candidates(
                self.tried, limit, aim, self._gradient, self._solved
            )

    def best_writable(self, limit: int, source: Source) -> tuple[Placement, bool] | None:
        """Return the best placement that can be written as a whole, see `best_of`."""
        left = list(self.found)
        while left:
            best, is_met = best_of(left, limit)
            if not source.apply(best.stages).obstacles:
                return best, is_met
            left = [one for one in left if one.runs != best.runs]
        return None

    def next_best(self, limit: int, best: Placement) -> tuple[Placement, ...]:
        """Return some placements within the budget besides the best, the cheapest first."""
        within = [one for one in self.found if one.peak <= limit and one.runs != best.runs]
        distinct = {one.runs: one for one in within}.values()
        return tuple(sorted(distinct, key=lambda one: (one.measured.flops, one.peak))[:_OTHERS])

    def _solved(self, limit: int) -> list[Placement]:
        found: list[Placement] = []
        for planner in self.planners:
            found += planner.within(limit, _interesting(found, limit))
        return found


def saved_by(placement: Placement, values: Sequence[NamedValue]) -> tuple[NamedValue, ...]:
    """Return the values that the policies of a placement name."""
    policies = " ".join(stage.policy or "" for stage in placement.stages)
    return tuple(one for one in values if f'"{one.name}"' in policies)


def _is_as_good(one: Placement, other: Placement) -> bool:
    """Return whether a placement needs about as little as another."""
    return one.measured.flops <= _EXACT * other.measured.flops and one.peak <= _EXACT * other.peak


def _interesting(tried: Sequence[Placement], limit: int) -> float:
    """Return the FLOPs of the best placement within a budget; further ones must not take more."""
    best, is_met = best_of(tried, limit) if tried else (None, False)
    return _EXACT * best.measured.flops if best and is_met else math.inf


def best_of(tried: Sequence[Placement], limit: int) -> tuple[Placement, bool]:
    """Return the cheapest placement within the budget, or else the lowest, and which it is.

    Of placements that are about as good, this is the one with the simplest source. The peak is that
    of the compiled program where there is one.
    """
    within = [one for one in tried if one.peak <= limit]
    least = min((one.measured.flops for one in within), default=0)
    cheap = [one for one in within if one.measured.flops <= _EQUAL * least]
    best = min(cheap or tried, key=lambda one: (one.peak, one.measured.flops))
    similar = [one for one in within or tried if _is_as_good(one, best)]
    if all(one.parts for one in similar):  # else no checkpoint is needed
        lowest = min(one.peak for one in similar)
        similar = [one for one in similar if one.peak <= _EXACT * lowest]
    order = operator.attrgetter("parts", "measured.flops", "peak")
    return min(similar, key=order), bool(within)


def compiled_candidates(
    tried: Sequence[Placement],
    limit: int,
    aim: int,
    gradient: Gradient,
    solved: Callable[[int], list[Placement]],
) -> tuple[Placement, ...]:
    """Return compiled placements, the lowest peak first; none if there is no time to compile.

    Args:
        tried: the traced placements.
        limit: the budget for the compiled program.
        aim: the budget that the placements were solved for.
        gradient: compiles placements.
        solved: returns traced placements for a budget of the trace.
    """
    found: dict[object, Placement] = {}

    def add(one: Placement) -> None:
        found.setdefault(one.runs, replace(one, compiled=gradient.compiled(one.runs)))

    obvious = _ranked([one for one in tried if one.name], aim)
    for one in (*_ranked(tried, aim)[:_SOLVED], *obvious[:_OBVIOUS]):
        if gradient.can_compile(1):
            add(one)
    if not found:
        return ()
    solutions = [one for one in found.values() if not one.name] or list(found.values())
    latest = min(solutions, key=lambda one: abs(one.peak - limit))
    for _ in range(_AGAIN):
        if _CLOSE * limit <= latest.peak <= limit:
            break
        aim = int(limit * latest.measured.peak_bytes / max(latest.peak, 1))
        best = min((one.measured.flops for one in found.values() if one.peak <= limit), default=0)
        fresh = [one for one in _ranked(solved(aim), aim)[:1] if one.runs not in found]
        if not fresh or not gradient.can_compile(1) or 0 < best <= fresh[0].measured.flops:
            break
        add(fresh[0])
        latest = found[fresh[0].runs]
    return tuple(sorted(found.values(), key=lambda one: (one.peak, one.measured.flops)))


def _ranked(tried: Sequence[Placement], aim: int) -> list[Placement]:
    """Return placements without repeats: those within a budget first, the cheapest first.

    Those that another one promises to beat in both respects come last. A trace may promise more
    than the compiler needs, so that one over the budget may be the best.
    """
    distinct = {one.runs: one for one in sorted(tried, key=lambda one: bool(one.name))}
    costs = {one.measured[:2] for one in distinct.values()}

    def order(one: Placement) -> tuple[bool, int, int, int]:
        peak, flops = own = one.measured[:2]
        is_dominated = any(p <= peak and f <= flops and (p, f) != own for p, f in costs)
        return is_dominated, max(peak - aim, 0), flops, peak

    return sorted(distinct.values(), key=order)
