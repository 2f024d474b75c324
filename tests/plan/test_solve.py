"""The solver against all paths: never over the budget, never dearer than the cheapest by 5 %."""

from __future__ import annotations

import itertools

import pytest
from planned_chains import paths, random_chain

from remat_migrate.measure.worker.records import PLAIN, WRAPPED, Chain
from remat_migrate.plan.chain import GROUP, Arc, Place, promise
from remat_migrate.plan.solve import Solver
from remat_migrate.plan.ties import Open, Ties

# Lines of the stages: each its own; a loop over one; loops over two and three; a loop between
# others; two loops one after the other.
SHAPES: dict[str, list[int] | None] = {
    "straight": None,
    "loop": [1] * 6,
    "loop of two lines": [1, 2] * 3,
    "loop of three lines": [1, 2, 3] * 2,
    "loop between": [1, 2, 2, 2, 3],
    "two loops": [1, 1, 1, 2, 2, 2],
}
BUDGETS = (0.2, 0.35, 0.5, 0.7, 0.9, 1.0)


def cheapest(found: list[list[Arc]], budget: int) -> int | None:
    return min(
        (need.flops for path in found if (need := promise(path)).peak_bytes <= budget),
        default=None,
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("light", [0.0, 0.3])
def test_cost_is_near_optimal(shape, seed, light):
    lines = SHAPES[shape]
    chain = random_chain(seed, len(lines) if lines else 5, lines, light)
    solver = Solver(chain)
    found = list(paths(chain, solver.arcs))
    plain = promise([here[0] for here in solver.arcs]).peak_bytes
    for share in BUDGETS:
        budget = int(share * plain)
        best = cheapest(found, budget)
        path = solver.solve(budget)
        if best is None:
            assert path is None
            continue
        assert path is not None
        assert promise(path).peak_bytes <= budget
        assert best <= promise(path).flops <= 1.05 * best


@pytest.mark.parametrize("shape", SHAPES)
def test_lowest_peak(shape):
    lines = SHAPES[shape]
    chain = random_chain(7, len(lines) if lines else 5, lines)
    solver = Solver(chain)
    lowest = min(promise(path).peak_bytes for path in paths(chain, solver.arcs))
    assert lowest <= promise(solver.lowest()).peak_bytes <= 1.01 * lowest


@pytest.mark.parametrize("seed", range(3))
def test_path_covers_all_stages(seed):
    chain = random_chain(seed, 30)
    solver = Solver(chain)
    path = solver.solve(promise(solver.lowest()).peak_bytes * 2)
    assert path is not None
    assert all(first.stop == second.start for first, second in itertools.pairwise(path))
    assert (path[0].start, path[-1].stop) == (0, 30)


@pytest.mark.parametrize("shape", [name for name, lines in SHAPES.items() if lines])
@pytest.mark.parametrize("share", BUDGETS)
def test_repeated_line_has_one_decision(shape, share):
    """All times, or all but the last; the rest of a loop may be a shorter group."""
    lines = SHAPES[shape]
    assert lines
    chain = random_chain(3, len(lines), lines)
    solver = Solver(chain)
    path = solver.solve(int(share * promise([here[0] for here in solver.arcs]).peak_bytes))
    for line in set(lines):
        kinds = [arc.kind for arc in path or () for each in arc.lines if each == line]
        policies = {arc.policy for arc in path or () if line in arc.lines and arc.kind != PLAIN}
        assert len(policies) <= 1
        wrapped = [kind != PLAIN for kind in kinds]
        # Once the checkpoints of a line have ended they do not begin again.
        assert wrapped == sorted(wrapped, reverse=True)
        assert not ({WRAPPED, GROUP} <= set(kinds[:2]))


@pytest.mark.parametrize("share", [0.4, 0.6, 0.8])
@pytest.mark.parametrize("seed", range(5))
def test_decisions_at_calls(seed, share):
    """Where only calls can be written: no group, and one decision for all times of a line."""

    class Calls:
        def allows(self, chain: Chain, arc: Arc) -> bool:
            return arc.kind != GROUP

        def allows_all_but_last(self, place: Place, kind: str) -> bool:
            return False

    lines = [1, 2] * 4
    solver = Solver(random_chain(seed, 8, lines), Calls())
    path = solver.solve(int(share * promise([here[0] for here in solver.arcs]).peak_bytes))
    for line in set(lines):
        assert len({(arc.kind, arc.policy) for arc in path or () if line in arc.lines}) <= 1
    assert all(arc.kind != GROUP for arc in path or ())
    free = Solver(random_chain(seed, 8, lines))
    most = int(share * promise([here[0] for here in free.arcs]).peak_bytes)
    if path is not None:
        cheapest = free.solve(most)
        assert cheapest is not None
        assert promise(cheapest).flops <= promise(path).flops


def test_line_is_not_decided_twice():
    chain = random_chain(0, 6, [1, 2] * 3)
    ties = Ties(chain, Solver(chain).arcs)

    def after(made: Open, place: int, arc: Arc) -> Open:
        [found] = [then for each, then in ties.onward(made, place) if each == arc]
        return found

    def kinds(made: Open, place: int) -> list[str]:
        return [arc.kind for arc, _ in ties.onward(made, place)]

    arcs = Solver(chain).arcs
    plain, wrapped = (after(after((), 0, arcs[0][n]), 1, arcs[1][0]) for n in (0, 1))
    assert kinds(plain, 2) == [PLAIN]
    assert kinds(wrapped, 2) == [WRAPPED]
    last = after(after(wrapped, 2, arcs[2][1]), 3, arcs[3][0])
    assert kinds(last, 4) == [PLAIN, WRAPPED]


def test_label_limit_keeps_budget_reachable(monkeypatch):
    """Where lines that alternate have very many decisions, a budget that can be met is met."""
    from remat_migrate.plan import solve

    chain = random_chain(5, 20, [1, 2, 3, 4] * 5)
    exact = Solver(chain)
    budget = int(1.3 * promise(exact.lowest()).peak_bytes)
    best = exact.solve(budget)
    monkeypatch.setattr(solve, "_MOST_LABELS", 50)
    few = Solver(chain).solve(budget)
    assert best is not None
    assert few is not None
    assert promise(few).peak_bytes <= budget
    assert promise(best).flops <= promise(few).flops
