"""What planning finds, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .chain import GROUP, PLAIN, Arc, Chain, promise


@dataclass(frozen=True, slots=True)
class Need:
    """What a gradient computation needs.

    Attributes:
        peak_bytes: the peak of live bytes besides arguments.
        flops: floating-point operations.
    """

    peak_bytes: int
    flops: int


@dataclass(frozen=True, slots=True)
class StageDecision:
    """What becomes of the stages of a line.

    Attributes:
        path: the file.
        line: the line.
        function: the function that the line stands in.
        times: how often the line runs.
        wrapped: how many of these are under a checkpoint.
        decision: `plain`, `wrapped`, `body` (of a loop over layers) or `group`.
        policy: the policy of the checkpoint, None without one.
        group: of a group, the lines that it covers, the first one first.
    """

    path: Path
    line: int
    function: str
    times: int
    wrapped: int
    decision: str
    policy: str | None
    group: tuple[int, ...] = ()

    @property
    def all_but_last(self) -> bool:
        """Whether the last time is left without a checkpoint."""
        return self.decision != PLAIN and self.wrapped < self.times


@dataclass(frozen=True, slots=True)
class Placement:
    """Checkpoints on the stages of a chain.

    Attributes:
        stages: the decision of each line.
        promised: what it should need, by the stages alone.
        measured: what the whole gradient needs, traced with it.
    """

    stages: tuple[StageDecision, ...]
    promised: Need
    measured: Need


@dataclass(frozen=True, slots=True)
class Plan:
    """The cheapest placement that was found within a budget.

    Attributes:
        target: the function, as the user named it.
        jax: the version of JAX.
        budget: the budget, as the user wrote it.
        budget_bytes: in bytes.
        bare: the gradient without checkpoints.
        now: as it is, with those that there are.
        checkpoints: how many sites there are; the plan stands in their place.
        best: the placement; where none is within the budget, the one with the lowest peak.
        is_met: whether it is within the budget.
        pareto: placements that no other one beats in both, the lowest peak first, if asked for.
        sites: the files and lines that apply the checkpoints that there are.
    """

    target: str
    jax: str
    budget: str
    budget_bytes: int
    bare: Need
    now: Need
    checkpoints: int
    best: Placement
    is_met: bool
    pareto: tuple[Placement, ...] = ()
    sites: tuple[tuple[Path, int], ...] = ()


def decisions(chain: Chain, path: Sequence[Arc]) -> tuple[StageDecision, ...]:
    """The decision of each heavy line of a chain, in the order of the program."""
    by_line: dict[int, list[tuple[Arc, bool]]] = {}
    for arc, number in _stages(path):
        link = chain.links[number]
        if link.heavy:
            by_line.setdefault(link.line, []).append((arc, number == arc.start))
    return tuple(_decision(chain, line, arcs) for line, arcs in by_line.items())


def _stages(path: Sequence[Arc]) -> Iterator[tuple[Arc, int]]:
    for arc in path:
        for number in range(arc.start, arc.stop):
            yield arc, number


def _decision(chain: Chain, line: int, found: Sequence[tuple[Arc, bool]]) -> StageDecision:
    wrapped = [arc for arc, _ in found if arc.kind != PLAIN]
    # The first one: a group at the end of a loop may be shorter.
    first = wrapped[0] if wrapped else found[0][0]
    return StageDecision(
        Path(chain.path),
        line,
        chain.function,
        len(found),
        len(wrapped),
        first.kind,
        first.policy,
        first.lines if first.kind == GROUP else (),
    )


def promised(path: Sequence[Arc], bare: Need) -> Need:
    """What a path should need."""
    of_path = promise(path)
    return Need(of_path.peak_bytes, bare.flops + of_path.flops)
