"""The solver against all paths: never over the budget, never dearer than the cheapest by 5 %."""

from __future__ import annotations

import itertools

import pytest
from planned_chains import paths, random_chain

from remat_migrate.measure.worker.records import PLAIN, WRAPPED, Alternative, pareto_marked
from remat_migrate.plan.chain import GROUP, Arc, arcs, promise
from remat_migrate.plan.solve import Open, Solver, Ties

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
    solver = Solver(chain, arcs(chain))
    found = list(paths(chain, arcs(chain)))
    plain = promise([here[0] for here in arcs(chain)]).peak_bytes
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
    solver = Solver(chain, arcs(chain))
    lowest = min(promise(path).peak_bytes for path in paths(chain, arcs(chain)))
    assert lowest <= promise(solver.lowest).peak_bytes <= 1.01 * lowest


@pytest.mark.parametrize("seed", range(3))
def test_path_covers_all_stages(seed):
    chain = random_chain(seed, 30)
    solver = Solver(chain, arcs(chain))
    path = solver.solve(promise(solver.lowest).peak_bytes * 2)
    assert path is not None
    assert all(first.stop == second.start for first, second in itertools.pairwise(path))
    assert (path[0].start, path[-1].stop) == (0, 30)


@pytest.mark.parametrize("shape", [name for name, lines in SHAPES.items() if lines])
@pytest.mark.parametrize("share", BUDGETS)
def test_repeated_line_has_one_decision(shape, share):
    """The rest of a loop may be a shorter group."""
    lines = SHAPES[shape]
    assert lines
    chain = random_chain(3, len(lines), lines)
    found = arcs(chain)
    path = Solver(chain, found).solve(int(share * promise([h[0] for h in found]).peak_bytes))
    for line in set(lines):
        kinds = {arc.kind for arc in path or () for each in arc.lines if each == line}
        policies = {arc.policy for arc in path or () if line in arc.lines}
        assert len(policies) <= 1
        assert len(kinds) <= 1 or kinds == {WRAPPED, GROUP}


@pytest.mark.parametrize("share", [0.4, 0.6, 0.8])
@pytest.mark.parametrize("seed", range(5))
def test_decisions_at_calls(seed, share):
    """Where only calls can be written, there is no group."""
    chain = random_chain(seed, 8, [1, 2] * 4)
    most = int(share * promise([here[0] for here in arcs(chain)]).peak_bytes)
    path = Solver(chain, arcs(chain, lambda _, arc: arc.kind != GROUP)).solve(most)
    assert all(arc.kind != GROUP for arc in path or ())
    if path is not None:
        cheapest = Solver(chain, arcs(chain)).solve(most)
        assert cheapest is not None
        assert promise(cheapest).flops <= promise(path).flops


def test_line_is_not_decided_twice():
    chain = random_chain(0, 6, [1, 2] * 3)
    found = arcs(chain)
    ties = Ties(chain, found)

    def after(made: Open, place: int, arc: Arc) -> Open:
        [then] = [then for each, then in ties.onward(made, place) if each == arc]
        return then

    def kinds(made: Open, place: int) -> list[str]:
        return [arc.kind for arc, _ in ties.onward(made, place)]

    plain, wrapped = (after(after((), 0, found[0][n]), 1, found[1][0]) for n in (0, 1))
    assert kinds(plain, 2) == [PLAIN]
    assert kinds(wrapped, 2) == [WRAPPED]


def test_label_limit_keeps_budget_reachable(monkeypatch):
    """Where lines that alternate have very many decisions, a budget that can be met is met."""
    from remat_migrate.plan import solve

    chain = random_chain(5, 20, [1, 2, 3, 4] * 5)
    exact = Solver(chain, arcs(chain))
    budget = int(1.3 * promise(exact.lowest).peak_bytes)
    best = exact.solve(budget)
    monkeypatch.setattr(solve, "_MOST_LABELS", 50)
    few = Solver(chain, arcs(chain)).solve(budget)
    assert best is not None
    assert few is not None
    assert promise(few).peak_bytes <= budget
    assert promise(best).flops <= promise(few).flops


def test_pareto_front():
    needs = {"slow": (1, 9), "wasteful": (2, 9), "fair": (2, 5), "as fair": (3, 5), "fast": (4, 1)}
    marked = pareto_marked([Alternative(name, *need, None) for name, need in needs.items()])
    assert {one.name for one in marked if one.pareto} == {"slow", "fair", "fast"}
    assert [one.peak_bytes for one in marked] == [1, 2, 2, 3, 4]
