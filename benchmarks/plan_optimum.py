"""Check that plans cost at most 5 % more than the optimum, and stay within their budget.

    python benchmarks/plan_optimum.py [CHAIN ...] [--seconds N]

    python benchmarks/plan_optimum.py transformer random-100

Chains: transformer (blocks in a Python loop, two lines each), scanned, pyramid (twenty stages of
convolutions, a line each), pyramid-loop (the same in a loop), flax, decoder, and random-20,
random-50, random-100. For each budget, the plan is compared with the solution of
`scipy.optimize.milp` for the same arcs and ties. For a model, the gradient is also traced with the
first plan and with the final one, as in `remat-migrate plan`. Nothing is executed. Needs scipy, and
jax and flax for the models; all chains take ten minutes.

For each budget, prints the operations that the plan adds as a share of those without checkpoints
(for a random chain, of a forward pass), those of the optimum, the ratio, the seconds of both
solvers, and for a model the traced peak relative to the budget: of the first plan, and of the final
one. If milp runs out of time, its proven bound replaces the optimum, marked with <. Exits with 1 if
a plan exceeds one of the limits.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from remat_migrate.measure.options import MeasureOptions
from remat_migrate.measure.session import measuring
from remat_migrate.measure.target import parse_target
from remat_migrate.measure.worker.records import PLAIN, WRAPPED, Chain, Choice, Link, Need
from remat_migrate.plan.chain import Arc, Place, chain_from, occurrences, promise
from remat_migrate.plan.planner import Gradient, Planner
from remat_migrate.plan.planning import best_of
from remat_migrate.plan.solve import Solver
from remat_migrate.plan.ties import COVERED, Decision, Ties, decision_of

ROOT = Path(__file__).resolve().parents[1]
PLACEMENTS, PLANNED = "fixtures/measured/placements", "fixtures/measured/planned"
MODELS = {
    "transformer": (
        f"{PLACEMENTS}/transformer.py:looped",
        f"{PLACEMENTS}/transformer.py:loop_arguments",
    ),
    "scanned": (
        f"{PLACEMENTS}/transformer.py:scanned",
        f"{PLACEMENTS}/transformer.py:scan_arguments",
    ),
    "pyramid": (f"{PLANNED}/pyramid.py:loss", f"{PLANNED}/pyramid.py:arguments"),
    "pyramid-loop": (f"{PLANNED}/pyramid.py:looped", f"{PLANNED}/pyramid.py:arguments"),
    "flax": (f"{PLANNED}/flax_stack.py:loss", f"{PLANNED}/flax_stack.py:arguments"),
    "decoder": ("fixtures/measured/decoder.py:loss", "fixtures/measured/decoder.py:arguments"),
}
RANDOM = (20, 50, 100)
SHARES = (0.8, 0.6, 0.4, 0.3, 0.2)
DEARER, OVER, SECONDS = 1.05, 1.05, 1.0

# Returns the planner of a chain.
Planning = Callable[[Chain], Planner]


class Optimum(NamedTuple):
    """The solution of milp.

    Attributes:
        flops: operations added; None if no path is within the budget.
        is_proven: whether it is optimal; otherwise `flops` is a lower bound.
    """

    flops: float | None
    is_proven: bool


def optimum(chain: Chain, by_stage: Sequence[Sequence[Arc]], budget: int, limit: float) -> Optimum:
    """Find the cheapest path as an integer program with a variable per arc and per decision."""
    arcs = [arc for here in by_stage for arc in here if arc.peak <= budget]
    ties = Ties(chain, by_stage)
    decided = list(_decisions(chain, by_stage))
    rows = _Rows(len(arcs) + len(decided))
    count = len(chain.links)
    for place in range(count + 1):
        leaving = {n: 1.0 for n, arc in enumerate(arcs) if arc.start == place}
        coming = {n: -1.0 for n, arc in enumerate(arcs) if arc.stop == place}
        rows.equal({**leaving, **coming}, (place == 0) - (place == count))
    for place in range(count):
        before = {n: arc.saved / budget for n, arc in enumerate(arcs) if arc.stop <= place}
        here = {n: arc.peak / budget for n, arc in enumerate(arcs) if arc.start == place}
        rows.at_most({**before, **here}, 1.0)
    for line in {line for line, _ in decided}:
        rows.equal({len(arcs) + n: 1.0 for n, (each, _) in enumerate(decided) if each == line}, 1)
    tied = {line for line, _ in decided}
    for n, arc in enumerate(arcs):
        links = chain.links[arc.start : arc.stop]
        for line in {link.place for link in links if link.heavy} & tied:
            leads = links[0].place == line
            fits = {
                len(arcs) + d: -1.0
                for d, (each, decision) in enumerate(decided)
                if each == line and (ties.agrees(decision, arc) if leads else decision == COVERED)
            }
            rows.at_most({n: 1.0, **fits}, 0.0)
    costs = np.array([arc.flops for arc in arcs] + [0] * len(decided), float)
    scale = max(costs.max(initial=0.0), 1.0)
    found = milp(
        costs / scale,
        constraints=rows.constraints(),
        integrality=np.ones(len(costs)),
        bounds=Bounds(0, 1),
        options={"time_limit": limit, "mip_rel_gap": 1e-4},
    )
    if found.status == 1:
        return Optimum((found.mip_dual_bound or 0.0) * scale, False)
    return Optimum(None if found.x is None else found.fun * scale, True)


class _Rows:
    """A set of constraints."""

    def __init__(self, variables: int) -> None:
        self._variables = variables
        self._entries: list[tuple[int, int, float]] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def equal(self, terms: Mapping[int, float], value: float) -> None:
        self._add(terms, value, value)

    def at_most(self, terms: Mapping[int, float], value: float) -> None:
        self._add(terms, -np.inf, value)

    def _add(self, terms: Mapping[int, float], low: float, high: float) -> None:
        self._entries += [(len(self._low), column, value) for column, value in terms.items()]
        self._low.append(low)
        self._high.append(high)

    def constraints(self) -> LinearConstraint:
        rows, columns, values = zip(*self._entries, strict=True)
        shape = len(self._low), self._variables
        return LinearConstraint(csr_matrix((values, (rows, columns)), shape), self._low, self._high)


def _decisions(chain: Chain, by_stage: Sequence[Sequence[Arc]]) -> Iterator[tuple[Place, Decision]]:
    """Yield the possible decisions for each line that runs more than once."""
    for line, places in occurrences(chain).items():
        if len(places) == 1:
            continue
        yield line, COVERED
        for arc in by_stage[places[0]]:
            yield line, decision_of(arc)


# -- chains


def random_chain(count: int) -> Chain:
    """Return a chain of stages with inputs of 1 to 3, residuals of 5 to 40 and costs of 1 to 10."""
    made = random.Random(count)
    links = []
    for number in range(count):
        given = made.randint(10**6, 3 * 10**6) if number else 0
        kept, flops = made.randint(5 * 10**6, 40 * 10**6), made.randint(10**6, 10**7)
        peak = given + kept + made.randint(10**6, 8 * 10**6)
        by_dots, again = int(kept * made.uniform(0.1, 0.5)), int(flops * made.uniform(0.05, 0.6))
        choices = (
            Choice(PLAIN, None, given, kept, peak, 0),
            Choice(WRAPPED, None, given, 0, peak, flops),
            Choice(WRAPPED, "dots_saveable", given, by_dots, peak + by_dots, again),
        )
        inputs = ((number - 1, given),) if number else ()
        place = "random.py", "random", number + 1
        links.append(Link(number, number + 1, *place, True, inputs, given, flops, choices))
    return Chain(tuple(links))


def report(
    name: str, chain: Chain, peak: int, flops: int, limit: float, planning: Planning | None
) -> bool:
    """Print the figures of a chain for all budgets, and return whether they are within limits."""
    solver = Solver(chain)
    planner = planning(chain) if planning else None
    kept = True
    functions = ", ".join(dict.fromkeys(link.function for link in chain.links if link.heavy))
    print(f"{name}: {len(chain.links)} stages of {functions}, {sum(map(len, solver.arcs))} arcs")
    for share in SHARES:
        budget = int(share * peak)
        before = time.process_time()
        path = Solver(chain).solve(budget)
        own = time.process_time() - before
        before = time.perf_counter()
        best = optimum(chain, solver.arcs, budget, limit)
        other = time.perf_counter() - before
        if path is None:
            kept = kept and best.flops is None
            print(f"  {share:4.0%}  no path; milp: {'none' if best.flops is None else 'one'}")
            continue
        added, lowest = promise(path).flops, best.flops or 0.0
        ratio = (flops + added) / (flops + lowest)
        extra = added / lowest if lowest > 0 else 1.0
        first = last = promise(path).peak_bytes / budget
        if planner is not None:
            tried = planner.within(budget)
            first = tried[0].measured.peak_bytes / budget
            last = best_of(tried, budget)[0].measured.peak_bytes / budget
        is_cheap = extra <= DEARER or not best.is_proven
        kept = kept and is_cheap and last <= OVER and own <= SECONDS
        print(
            f"  {share:4.0%}  plan +{added / flops:.4f}  optimum {'' if best.is_proven else '<'}"
            f"+{lowest / flops:.4f}  added {extra:.4f}, all {ratio:.4f}  {own:6.3f} s and"
            f" {other:6.2f} s  {'traced' if planner else 'promised'} {first:.3f}, {last:.3f}",
            flush=True,
        )
    return kept


def of_model(name: str, limit: float) -> bool:
    """Check all chains of a model."""
    text, args = MODELS[name]
    target = parse_target(text, ROOT)
    with measuring(target, MeasureOptions(args=args), ROOT) as session:
        reply = session.ask("chains")
        bare = Need(*reply["bare"])

        gradient = Gradient(bare, session.ask)

        def planning(chain: Chain) -> Planner:
            return Planner(chain, gradient)

        kept = True
        for data in reply["chains"]:
            chain = chain_from(data)
            kept = report(name, chain, bare.peak_bytes, bare.flops, limit, planning) and kept
        return kept


def main() -> int:
    """Check the named chains, or all."""
    names = [*MODELS, *(f"random-{count}" for count in RANDOM)]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("chains", nargs="*", metavar="CHAIN", help=", ".join(names))
    parser.add_argument("--seconds", type=float, default=60.0, help="for each run of milp")
    given = parser.parse_args()
    if unknown := set(given.chains) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    kept = True
    for name in given.chains or names:
        if name in MODELS:
            kept = of_model(name, given.seconds) and kept
        else:
            chain = random_chain(int(name.rpartition("-")[2]))
            plain = promise([here[0] for here in Solver(chain).arcs]).peak_bytes
            forward = sum(link.flops for link in chain.links)
            kept = report(name, chain, plain, forward, given.seconds, None) and kept
    print("all within the limits" if kept else "a limit is exceeded")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
