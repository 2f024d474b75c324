"""Combine the stages of several functions into chains that cover a whole program.

A model may run an encoder, a decoder and a head, each a function with stages of its own, and each
stage may run a function with smaller stages. Every function that is a chain starts a combination.
It is completed by the lines of other functions that run elsewhere, those at a similar depth first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .stages import HEAVY, Flat, StageChain

# Share of all operations that must come from a function for its lines to be stages.
_SHARE = 0.03
# Share of the operations of the largest combination that others must cover.
_COVERED = 0.6

_Run = tuple[int, int]


class PlacedStage(NamedTuple):
    """Equations `start` to `stop`, and the line that runs them; a light stage has none."""

    start: int
    stop: int
    path: str
    function: str
    line: int
    flops: int

    @property
    def is_heavy(self) -> bool:
        """Whether it is worth a checkpoint of its own."""
        return bool(self.line)


def combinations(flat: Flat) -> list[tuple[PlacedStage, ...]]:
    """Return the heavy stages of each combination, in order; the outermost combination first."""
    chains = sorted(flat.chains(1, _SHARE), key=lambda chain: _depth(flat, chain))
    levels = _levels(chains)
    loops = set(flat.scans())
    found: dict[tuple[_Run, ...], tuple[PlacedStage, ...]] = {}
    for first, level in zip(chains, levels):
        runs = _runs(first)
        if len(runs) == 1 and not any(start <= n < stop for start, stop in runs for n in loops):
            continue
        near = sorted(range(len(chains)), key=lambda number: abs(levels[number] - level))
        stages = _combined(first, [chains[number] for number in near])
        runs = tuple((stage.start, stage.stop) for stage in stages)
        # The innermost function that runs a loop over layers shows its body.
        if runs not in found or any(start <= n < stop for start, stop in runs for n in loops):
            found[runs] = stages
    covered = [sum(stage.flops for stage in stages) for stages in found.values()]
    least = _COVERED * max(covered, default=0)
    return [stages for stages, flops in zip(found.values(), covered) if flops >= least]


def _combined(first: StageChain, others: Sequence[StageChain]) -> tuple[PlacedStage, ...]:
    """Return the stages of a chain, and all lines of others that do not overlap with them."""
    least = HEAVY * max(stage.flops for stage in first.heavy)
    chosen: list[PlacedStage] = []
    for chain in (first, *others):
        for line in chain.lines:
            own = [
                PlacedStage(stage.start, stage.stop, chain.path, chain.function, line, stage.flops)
                for stage in chain.heavy
                if stage.line == line and stage.flops > least
            ]
            if not any(_overlap(one, other) for one in own for other in chosen):
                chosen += own
    return tuple(sorted(chosen))


def _overlap(one: PlacedStage, other: PlacedStage) -> bool:
    return one.start < other.stop and other.start < one.stop


def _runs(chain: StageChain) -> tuple[_Run, ...]:
    return tuple((stage.start, stage.stop) for stage in chain.heavy)


def _levels(chains: Sequence[StageChain]) -> list[int]:
    """Return for each chain, the outermost first, how many chains contain it in a stage."""
    levels: list[int] = []
    for number, chain in enumerate(chains):
        outer = [levels[n] for n in range(number) if _contains(_runs(chains[n]), _runs(chain))]
        levels.append(1 + max(outer, default=0))
    return levels


def _contains(outer: Sequence[_Run], inner: Sequence[_Run]) -> bool:
    """Return whether each inner run lies in an outer one, and the two differ."""
    return outer != inner and all(
        any(start <= first and last <= stop for start, stop in outer) for first, last in inner
    )


def _depth(flat: Flat, chain: StageChain) -> tuple[int, str, str]:
    """Return the call depth of a chain's function, with its name to break ties."""
    functions = [frame[:2] for frame in reversed(flat.frames[chain.heavy[0].start])]
    return functions.index((chain.path, chain.function)), chain.path, chain.function
