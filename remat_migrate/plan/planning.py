"""From a target and a budget to a plan: stages are measured, the chain solved, the plan traced.

What the stages promise together is measured on the whole gradient. Where that needs more than the
budget, the chain is solved for less; where it needs clearly less than was promised, for more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import VerificationError
from ..measure.options import MeasureOptions
from ..measure.session import measuring
from ..measure.target import Target
from .budget import Budget
from .chain import GROUP, PLAIN, WRAPPED, Arc, Chain, chain_from, promise
from .plan import Need, Placement, Plan, decisions, promised
from .solve import Solver

# How often a chain is solved and traced.
_ROUNDS = 6
# Of the budget: a plan that needs less than this, and less than it promised, may be too careful.
_CAREFUL = 0.97
# Of what must be taken off a budget so that the next plan is another one.
_STEP = 0.995
# Points of the Pareto front that are looked for.
_POINTS = 16

_Ask = Callable[..., Mapping[str, Any]]


def plan(
    target: Target,
    options: MeasureOptions,
    folder: Path,
    budget: Budget,
    *,
    pareto: bool = False,
    as_calls: bool = False,
) -> Plan:
    """The cheapest placement of checkpoints within a budget.

    Args:
        target: the function that is differentiated.
        options: how it is measured.
        folder: the one that names in the options are seen from.
        budget: how much memory it may need.
        pareto: whether to look for placements within other budgets, too.
        as_calls: whether only what can be written as checkpoints on calls as they stand.

    Raises:
        VerificationError: it cannot be measured, or is no chain; the message says why.
    """
    with measuring(target, options, folder) as session:
        found = session.measurement
        reply = session.ask("chains")
        chains = [chain_from(data) for data in reply["chains"]]
        if not chains:
            raise VerificationError(
                f"{target.text}: it is no chain: none of its functions runs two stages or more one"
                " after the other, or a loop over layers, that could be put under checkpoints"
            )
        bare = _need(reply["bare"])
        limit = budget.bytes_of(bare.peak_bytes)
        planners = [Planner(chain, bare, session.ask, as_calls=as_calls) for chain in chains]
        tried = list(_of_all(planners, limit))
        best, is_met = best_of(tried, limit)
        front: tuple[Placement, ...] = ()
        if pareto:
            front = _front([*tried, *(one for each in planners for one in each.front())])
        return Plan(
            target.text,
            found.jax,
            budget.text,
            limit,
            bare,
            Need(found.cost.peak_bytes, found.cost.flops),
            len(found.sites),
            best,
            is_met,
            front,
            tuple((site.path, site.line) for site in found.sites),
        )


class Planner:
    """One chain, to be solved for budgets and traced."""

    def __init__(self, chain: Chain, bare: Need, asked: _Ask, *, as_calls: bool = False) -> None:
        self._chain, self._bare, self._asked = chain, bare, asked
        self._solver = Solver(chain, as_calls=as_calls)
        self._traced: dict[tuple[Arc, ...], Placement] = {}
        self._least: dict[int, float] = {}

    def least(self, limit: int) -> float:
        """The operations that its cheapest placement promises; without end where there is none."""
        if limit not in self._least:
            path = self._solver.solve(limit)
            self._least[limit] = promised(path, self._bare).flops if path else float("inf")
        return self._least[limit]

    def within(self, limit: int) -> list[Placement]:
        """Placements that were tried for a budget."""
        tried: list[Placement] = []
        # What the stages may promise: `low` was seen to be within the budget, `high` to be above.
        aim, low, high = float(limit), 0.0, float("inf")
        for _ in range(_ROUNDS):
            path = self._solver.solve(int(aim))
            if path is None:
                # Even what promises most may need less than it promises.
                path = self._solver.lowest()
                if path in self._traced:
                    break
            known = path in self._traced
            placement = self._placement(path)
            tried.append(placement)
            needed = placement.measured.peak_bytes
            if needed > limit:
                # The same path would be found for all that it promises.
                high = min(high, aim, float(promise(path).peak_bytes))
                aim = high * min(limit / needed, _STEP)
                if low:
                    aim = max(aim, (low + high) / 2)
            elif needed < _CAREFUL * limit and promise(path).peak_bytes > needed and not known:
                low = max(low, aim)
                aim = min(aim * limit / needed, high * _STEP)
            else:
                break
            if aim <= low:
                break
        return tried

    def front(self) -> list[Placement]:
        """Placements for budgets from the lowest that can be met to that of no checkpoint."""
        lowest = self._solver.lowest()
        low, high = promise(lowest).peak_bytes, self._bare.peak_bytes
        paths = [lowest]
        for number in range(1, _POINTS + 1):
            # Steps that grow: where memory is scarce a little of it costs most.
            path = self._solver.solve(int(low * (max(high, low) / low) ** (number / _POINTS)))
            if path is not None:
                paths.append(path)
        return [self._placement(path) for path in dict.fromkeys(paths)]

    def _placement(self, path: tuple[Arc, ...]) -> Placement:
        if path not in self._traced:
            links = self._chain.links
            runs = [
                (links[arc.start].start, links[arc.stop - 1].stop, _kind(arc), arc.policy)
                for arc in path
                if arc.kind != PLAIN
            ]
            measured = _need(self._asked("trace", runs=runs))
            self._traced[path] = Placement(
                decisions(self._chain, path), promised(path, self._bare), measured
            )
        return self._traced[path]


def _kind(arc: Arc) -> str:
    return WRAPPED if arc.kind == GROUP else arc.kind


def _of_all(planners: Sequence[Planner], limit: int) -> Iterator[Placement]:
    """Placements of all chains, but for those that promise nothing cheaper than what was found."""
    found: list[Placement] = []
    for planner in sorted(planners, key=lambda each: each.least(limit)):
        if found:
            best, is_met = best_of(found, limit)
            if is_met and planner.least(limit) >= best.measured.flops:
                continue
        more = planner.within(limit)
        found += more
        yield from more


def best_of(tried: Sequence[Placement], limit: int) -> tuple[Placement, bool]:
    """The cheapest one within the budget; without one the lowest."""
    within = [one for one in tried if one.measured.peak_bytes <= limit]
    if within:
        return min(within, key=lambda one: (one.measured.flops, one.measured.peak_bytes)), True
    return min(tried, key=lambda one: (one.measured.peak_bytes, one.measured.flops)), False


def _front(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """Those that no other one beats in both, the lowest peak first."""
    front: list[Placement] = []
    for one in sorted(placements, key=lambda one: (one.measured.peak_bytes, one.measured.flops)):
        if not front or one.measured.flops < front[-1].measured.flops:
            front.append(one)
    return tuple(front)


def _need(data: Mapping[str, Any]) -> Need:
    return Need(data["peak_bytes"], data["flops"])
