"""A plan: the decision for each line, with its expected and measured cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..measure.measurement import Measurement
from ..measure.worker.records import PLAIN, Chain, Cost, NamedValue
from ..measure.worker.schedules import sizes_of
from .chain import GROUP, Arc, Place, Run

# What may be needed besides what was planned and still be as planned.
SAME = 1.01


@dataclass(frozen=True, slots=True)
class StageDecision:
    """The decision for the stages on one line of source code.

    Attributes:
        path: the file.
        line: the line.
        function: the function that contains the line.
        times: how often the line runs.
        wrapped: how many of these runs are under a checkpoint.
        decision: `plain`, `wrapped`, `body` (of a loop), `group`, or `segments` with their sizes.
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
    def parts(self) -> int:
        """A measure of the source that it adds; 0 if none."""
        if self.decision == PLAIN:
            return 0
        return (
            1
            + 2 * (self.decision == GROUP)
            + 2 * len(sizes_of(self.decision))
            + (self.policy is not None)
            + (self.policy or "").count('"') // 2
        )


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a placement cannot be written into the source.

    Attributes:
        path: the file.
        line: the line of a stage, or of a checkpoint to remove.
        reason: the reason.
    """

    path: Path
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Checkpoints on the stages of a chain.

    Attributes:
        stages: the decision for each line.
        promised: the expected cost, from the costs of the stages.
        measured: the cost of the traced gradient.
        runs: the start, stop, kind and policy of each checkpoint on a run of equations.
        name: the name of an obvious placement, or the empty string.
        compiled: bytes of the compiled program besides its inputs, None if it was not compiled.
    """

    stages: tuple[StageDecision, ...]
    promised: Cost
    measured: Cost
    runs: tuple[Run, ...]
    name: str = ""
    compiled: int | None = None

    @property
    def parts(self) -> int:
        """A measure of the source that it adds, see `StageDecision.parts`."""
        return sum(stage.parts for stage in self.stages)

    @property
    def peak(self) -> int:
        """The peak of the compiled program, or else of the trace."""
        return self.measured.peak_bytes if self.compiled is None else self.compiled


@dataclass(frozen=True, slots=True)
class Plan:
    """The cheapest placement within a budget.

    Attributes:
        found: the target with its current checkpoints, which the plan replaces.
        budget: the budget, as the user wrote it.
        budget_bytes: the budget in bytes.
        bare: the cost without checkpoints.
        best: the placement; if none is within the budget, the one with the lowest peak.
        is_met: whether it is within the budget.
        tried: the number of traced placements.
        bare_compiled: compiled bytes without checkpoints, None if nothing was compiled.
        now_compiled: compiled bytes with the current checkpoints, if any, likewise.
        candidates: the compiled placements, the lowest peak first.
        unwritten: a better placement, which cannot be written into the source.
        obstacles: why it cannot be written.
        others: further placements within the budget that can be written, the best first.
        values: the values that the policies name: each gets `checkpoint_name` on its line.
    """

    found: Measurement
    budget: str
    budget_bytes: int
    bare: Cost
    best: Placement
    is_met: bool
    tried: int
    bare_compiled: int | None
    now_compiled: int | None
    candidates: tuple[Placement, ...]
    unwritten: Placement | None
    obstacles: tuple[Obstacle, ...]
    others: tuple[Placement, ...]
    values: tuple[NamedValue, ...]

    @property
    def now(self) -> Cost:
        """The cost with the current checkpoints."""
        return self.found.cost

    @property
    def is_in_place(self) -> bool:
        """Whether the current checkpoints need as little as the placement."""
        return bool(self.found.sites) and is_as_planned(self.best, self.now, self.now_compiled)

    @property
    def needed_bytes(self) -> int:
        """Memory that the placement needs on each device, arguments included."""
        return self.best.peak + (0 if self.found.is_step else self.found.argument_bytes)

    @property
    def basis(self) -> str:
        """How the peak of the placement is known."""
        return "traced" if self.best.compiled is None else f"compiled for {self.found.backend}"


def is_as_planned(planned: Placement, need: Cost, compiled: int | None) -> bool:
    """Return whether a source needs what was planned."""
    needed = need.peak_bytes, need.flops, compiled or 0
    figures = planned.measured.peak_bytes, planned.measured.flops, planned.compiled or 0
    return all(new <= SAME * old for new, old in zip(needed, figures, strict=True))


def decisions(chain: Chain, path: Sequence[Arc]) -> tuple[StageDecision, ...]:
    """Return the decision for each heavy line of a chain, in program order."""
    by_line: dict[Place, list[Arc]] = {}
    for arc in path:
        for link in chain[arc.start : arc.stop]:
            if link.heavy:
                by_line.setdefault(link.place, []).append(arc)
    return tuple(_decision(place, arcs) for place, arcs in by_line.items())


def _decision(place: Place, found: Sequence[Arc]) -> StageDecision:
    wrapped = [arc for arc in found if arc.kind != PLAIN]
    # A group at the end of a loop may be shorter than the first.
    first = wrapped[0] if wrapped else found[0]
    path, function, line = place
    return StageDecision(
        Path(path),
        line,
        function,
        len(found),
        len(wrapped),
        first.kind,
        first.policy,
        first.lines if first.kind == GROUP else (),
    )
