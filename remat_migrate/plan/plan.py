"""A plan: the decision for each line, with its expected and measured cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..measure.worker.records import PLAIN, Chain, Need
from .chain import GROUP, Arc


@dataclass(frozen=True, slots=True)
class StageDecision:
    """The decision for the stages of a line.

    Attributes:
        path: the file.
        line: the line.
        function: the function that contains the line.
        times: how often the line runs.
        wrapped: how many of these runs are under a checkpoint.
        decision: `plain`, `wrapped`, `body` (of a loop over layers) or `group`.
        policy: the policy of the checkpoint, or None.
        group: the lines of a group, in order.
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
        """Whether the last run has no checkpoint."""
        return self.decision != PLAIN and self.wrapped < self.times


@dataclass(frozen=True, slots=True)
class Placement:
    """Checkpoints on the stages of a chain.

    Attributes:
        stages: the decision for each line.
        promised: the expected cost, from the costs of the stages.
        measured: the cost of the traced gradient.
    """

    stages: tuple[StageDecision, ...]
    promised: Need
    measured: Need


@dataclass(frozen=True, slots=True)
class Plan:
    """The cheapest placement within a budget.

    Attributes:
        target: the function, as the user named it.
        jax: the version of JAX.
        budget: the budget, as the user wrote it.
        budget_bytes: the budget in bytes.
        bare: the cost without checkpoints.
        now: the cost with the current checkpoints.
        checkpoints: the number of current sites, which the plan replaces.
        best: the placement; if none is within the budget, the one with the lowest peak.
        is_met: whether it is within the budget.
        pareto: the Pareto front of peak and FLOPs, the lowest peak first, if requested.
        sites: the files and lines of the current sites.
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
    """Return the decision for each heavy line of a chain, in program order."""
    by_line: dict[int, list[Arc]] = {}
    for arc in path:
        for link in chain.links[arc.start : arc.stop]:
            if link.heavy:
                by_line.setdefault(link.line, []).append(arc)
    return tuple(_decision(chain, line, arcs) for line, arcs in by_line.items())


def _decision(chain: Chain, line: int, found: Sequence[Arc]) -> StageDecision:
    wrapped = [arc for arc in found if arc.kind != PLAIN]
    # A group at the end of a loop may be shorter than the first.
    first = wrapped[0] if wrapped else found[0]
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
