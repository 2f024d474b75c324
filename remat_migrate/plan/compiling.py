"""Compile the best candidates and the obvious ones, and solve again where the compiler disagrees.

A compiled program can need several times what its trace promises: the compiler fuses, reorders, and
may merge a recomputation with the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from .plan import Placement
from .planner import Gradient

# The solved and the obvious placements that are compiled first, and further solutions.
_SOLVED, _OBVIOUS, _ROUNDS = 3, 8, 3
# A compiled peak between this share of the budget and the budget is not improved further.
_CLOSE = 0.9


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

    obvious = _not_dominated_first(list(_front_first(_named(tried), aim, len(tried))))
    first = (*_front_first(tried, aim, _SOLVED), *obvious[:_OBVIOUS])
    for one in first:
        if gradient.can_compile(1):
            add(one)
    if not found:
        return ()
    solutions = [one for one in found.values() if not one.name] or list(found.values())
    latest = min(solutions, key=lambda one: abs(one.peak - limit))
    for _ in range(_ROUNDS):
        if _CLOSE * limit <= latest.peak <= limit:
            break
        aim = int(limit * latest.measured.peak_bytes / max(latest.peak, 1))
        best = min((one.measured.flops for one in found.values() if one.peak <= limit), default=0)
        fresh = [one for one in _front_first(solved(aim), aim, 1) if one.runs not in found]
        if not fresh or not gradient.can_compile(1) or 0 < best <= fresh[0].measured.flops:
            break
        add(fresh[0])
        latest = found[fresh[0].runs]
    return tuple(sorted(found.values(), key=lambda one: (one.peak, one.measured.flops)))


def _named(tried: Sequence[Placement]) -> list[Placement]:
    return [one for one in tried if one.name]


def _not_dominated_first(ordered: Sequence[Placement]) -> list[Placement]:
    """Move the placements that another one promises to beat in both respects to the end.

    A trace may promise more than the compiler needs, so that one over the budget may be the best.
    """

    def costs(one: Placement) -> tuple[int, int]:
        return one.measured.peak_bytes, one.measured.flops

    def is_dominated(one: Placement) -> bool:
        peak, flops = costs(one)
        return any(
            p <= peak and f <= flops and (p, f) != (peak, flops) for p, f in map(costs, ordered)
        )

    return sorted(ordered, key=is_dominated)


def _front_first(tried: Sequence[Placement], aim: int, count: int) -> Iterator[Placement]:
    """Yield some placements: those within a budget first, the cheapest first, without repeats."""
    distinct = {one.runs: one for one in sorted(tried, key=lambda one: bool(one.name))}

    def order(one: Placement) -> tuple[int, int, int]:
        over = max(one.measured.peak_bytes - aim, 0)
        return over, one.measured.flops, one.measured.peak_bytes

    yield from sorted(distinct.values(), key=order)[:count]
