"""Plan checkpoints: measure the stages of a target, solve the chain, trace the placement.

The expected cost of a placement is the sum of its stages; the whole gradient is then traced with
it. If that exceeds the budget, the chain is solved for less memory; if it uses clearly less than
expected, for more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import VerificationError
from ..measure.options import MeasureOptions
from ..measure.session import measuring
from ..measure.target import Target
from ..measure.worker.records import PLAIN, WRAPPED, Chain, Need
from .budget import Budget
from .chain import GROUP, Arc, chain_from, promise
from .plan import Placement, Plan, decisions
from .solve import Solver

_ROUNDS = 6
# A plan that needs less than this share of the budget, and less than expected, may be improved.
_CAREFUL = 0.97
# The factor by which a budget must shrink for the next plan to differ.
_STEP = 0.995
# Budgets that are tried for the Pareto front.
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
    """Return the cheapest placement of checkpoints within a budget.

    Args:
        target: the function that is differentiated.
        options: how to measure it.
        folder: the folder that names in the options are relative to.
        budget: how much memory it may use.
        pareto: whether to return the Pareto front, too.
        as_calls: whether to allow only checkpoints on existing calls.

    Raises:
        VerificationError: the target cannot be measured, or has no stages to checkpoint.
    """
    with measuring(target, options, folder) as session:
        found = session.measurement
        reply = session.ask("chains")
        chains = [chain_from(data) for data in reply["chains"]]
        if not chains:
            raise VerificationError(
                f"{target.text}: nothing to checkpoint: none of its functions runs several stages"
                " in sequence or a loop over layers"
            )
        bare = Need(*reply["bare"])
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
    """Solves one chain for budgets and traces the placements."""

    def __init__(self, chain: Chain, bare: Need, asked: _Ask, *, as_calls: bool = False) -> None:
        self._chain, self._bare, self._asked = chain, bare, asked
        self._solver = Solver(chain, as_calls=as_calls)
        self._traced: dict[tuple[Arc, ...], Placement] = {}
        self._least: dict[int, float] = {}

    def least(self, limit: int) -> float:
        """Return the expected FLOPs of the cheapest placement; infinite if there is none."""
        if limit not in self._least:
            path = self._solver.solve(limit)
            self._least[limit] = promise(path, self._bare.flops).flops if path else float("inf")
        return self._least[limit]

    def within(self, limit: int) -> list[Placement]:
        """Return the placements tried for a budget."""
        tried: list[Placement] = []
        # Expected peaks: `low` turned out to be within the budget, `high` above.
        aim, low, high = float(limit), 0.0, float("inf")
        for _ in range(_ROUNDS):
            path = self._solver.solve(int(aim))
            if path is None:
                # The placement with the lowest peak may need less than expected.
                path = self._solver.lowest()
                if path in self._traced:
                    break
            known = path in self._traced
            placement = self._placement(path)
            tried.append(placement)
            needed = placement.measured.peak_bytes
            if needed > limit:
                # Every budget down to the expected peak gives the same path.
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
        """Return placements for budgets from the lowest possible to that without checkpoints."""
        lowest = self._solver.lowest()
        low, high = promise(lowest).peak_bytes, self._bare.peak_bytes
        paths = [lowest]
        for number in range(1, _POINTS + 1):
            # Growing steps: FLOPs change fastest where memory is scarce.
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
            measured = Need(*self._asked("trace", runs=runs)["need"])
            self._traced[path] = Placement(
                decisions(self._chain, path), promise(path, self._bare.flops), measured
            )
        return self._traced[path]


def _kind(arc: Arc) -> str:
    return WRAPPED if arc.kind == GROUP else arc.kind


def _of_all(planners: Sequence[Planner], limit: int) -> Iterator[Placement]:
    """Yield placements of all chains, except chains that cannot be cheaper than those found."""
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
    """Return the cheapest placement within the budget, or else the lowest, and which it is."""
    within = [one for one in tried if one.measured.peak_bytes <= limit]
    if within:
        return min(within, key=lambda one: (one.measured.flops, one.measured.peak_bytes)), True
    return min(tried, key=lambda one: (one.measured.peak_bytes, one.measured.flops)), False


def _front(placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """Return the Pareto front, the lowest peak first."""
    front: list[Placement] = []
    for one in sorted(placements, key=lambda one: (one.measured.peak_bytes, one.measured.flops)):
        if not front or one.measured.flops < front[-1].measured.flops:
            front.append(one)
    return tuple(front)
