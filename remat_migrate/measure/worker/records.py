"""The records that a measuring process sends: the same classes on both sides of the pipe.

On the pipe a record is a JSON array of its fields, and a path a string.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class SiteVerdict(StrEnum):
    """The effect of a checkpoint on the gradient computation."""

    SAVES = "saves"
    COSTS_MORE = "costs-more-than-it-saves"
    NOTHING = "does-nothing"
    WASTEFUL = "wasteful"

    __str__ = str.__str__


REMOVABLE = (SiteVerdict.NOTHING, SiteVerdict.WASTEFUL)


class Cost(NamedTuple):
    """The memory and operations of a gradient computation.

    Attributes:
        peak_bytes: peak of live bytes, arguments excluded.
        flops: floating-point operations.
        residual_bytes: bytes of the residuals; None if the function takes gradients itself, and for
            an estimate.
    """

    peak_bytes: int
    flops: int
    residual_bytes: int | None = None


class CallLine(NamedTuple):
    """A line that calls a checkpointed function, and how often JAX traces that call."""

    path: Path
    line: int
    times: int


class SiteMeasurement(NamedTuple):
    """The savings and costs of one checkpoint.

    Attributes:
        path: file that applies the checkpoint.
        line: line that applies it.
        api: function that is applied, such as `jax.checkpoint`.
        function: qualified name of the checkpointed function.
        calls: lines that call the checkpointed function.
        applications: number of applications when the target runs once, counting loop iterations.
        cost: cost of the target with this checkpoint.
        without: cost of the target without it.
        verdict: effect of the checkpoint.
        compiled: temporary bytes of the compiled program with and without it, if compiled.
        note: further explanation, or the empty string.
        rivals: the other checkpoints that could be removed, if not all of them can be.
    """

    path: Path
    line: int
    api: str
    function: str
    calls: tuple[CallLine, ...]
    applications: int
    cost: Cost
    without: Cost
    verdict: SiteVerdict
    compiled: tuple[int, int] | None = None
    note: str = ""
    rivals: tuple[tuple[Path, int], ...] = ()

    @property
    def is_removable(self) -> bool:
        """Whether the gradient computation needs no more memory without it."""
        return self.verdict in REMOVABLE

    @property
    def peak_bytes_saved(self) -> int:
        """Bytes by which the checkpoint lowers the peak."""
        return self.without.peak_bytes - self.cost.peak_bytes

    @property
    def recomputed_flops(self) -> int:
        """Operations that the checkpoint adds."""
        return self.cost.flops - self.without.flops

    @property
    def residual_bytes_avoided(self) -> int | None:
        """Bytes of residuals that the checkpoint avoids."""
        if self.cost.residual_bytes is None or self.without.residual_bytes is None:
            return None
        return self.without.residual_bytes - self.cost.residual_bytes


class Alternative(NamedTuple):
    """An alternative placement of checkpoints.

    Attributes:
        name: description of the placement.
        peak_bytes: peak of live bytes of the gradient computation.
        flops: its floating-point operations.
        compiled_bytes: temporary memory of the compiled program, None if not compiled.
        pareto: whether no other alternative is better in both peak and operations.
        policy: the policy of all its checkpoints, or the empty string for their own ones.
        residual_bytes: bytes of the residuals; None if unknown.
    """

    name: str
    peak_bytes: int
    flops: int
    compiled_bytes: int | None
    pareto: bool = False
    policy: str = ""
    residual_bytes: int | None = None


class NameUse(NamedTuple):
    """What becomes of the values that `checkpoint_name` gives one name.

    Attributes:
        name: the name.
        path: file that names the first of them, None if none has the name.
        line: its line, or 0.
        bytes: bytes of all of them.
        state: `saved`, `offloaded`, or `not-saved`.
        reason: why they are not saved, or the empty string.
    """

    name: str
    path: Path | None
    line: int
    bytes: int
    state: str
    reason: str


class PolicyUse(NamedTuple):
    """What the policy of a checkpoint saves.

    Attributes:
        path: file that applies the checkpoint.
        line: line that applies it.
        policy: the policy.
        saved_bytes: bytes of residuals that it adds; None for a training step.
        added_peak_bytes: bytes by which it raises the traced peak; less than 0 if it offloads.
        avoided_flops: operations that it saves from being computed again.
        matched: what it saves, by operation or name.
        absent: names that it lists, but no value under this checkpoint has.
        is_batched: whether it matches nothing, and all products have batch dimensions.
    """

    path: Path
    line: int
    policy: str
    saved_bytes: int | None
    added_peak_bytes: int
    avoided_flops: int
    matched: tuple[str, ...]
    absent: tuple[str, ...]
    is_batched: bool = False


class Residual(NamedTuple):
    """A value that the forward pass keeps for the backward pass.

    Attributes:
        shape: shape and dtype, such as `float32[8,512]`.
        bytes: size in bytes.
        origin: where the value comes from, such as `output of sin`.
        name: name given by `checkpoint_name`, or the empty string.
        path: file of the line that computes it; None for arguments and constants.
        line: line that computes it, or 0.
    """

    shape: str
    bytes: int
    origin: str
    name: str = ""
    path: Path | None = None
    line: int = 0


# Kinds of checkpoints on a stage: none, one on the stage, or one on the body of its loop.
PLAIN, WRAPPED, BODY = "plain", "wrapped", "body"


class NamedValue(NamedTuple):
    """A value that a policy may save by name.

    Attributes:
        name: name for `checkpoint_name`.
        path: file of the assignment that computes it.
        function: function of the assignment.
        line: line of the assignment.
        bytes: bytes of the largest of its arrays.
        flops: FLOPs of the line.
    """

    name: str
    path: Path
    function: str
    line: int
    bytes: int
    flops: int

    @property
    def place(self) -> tuple[str, str, int]:
        """The file, function and line of the assignment."""
        return str(self.path), self.function, self.line


class Choice(NamedTuple):
    """The cost of a stage with one kind of checkpoint.

    Attributes:
        kind: kind of checkpoint.
        policy: name of the policy, or None.
        inputs: bytes of residuals that are outputs of earlier stages and count for this stage.
        others: bytes of other residuals.
        peak: peak of live bytes while the stage runs, on top of the residuals of earlier stages.
        flops: recomputed FLOPs.
    """

    kind: str
    policy: str | None
    inputs: int
    others: int
    peak: int
    flops: int


class Link(NamedTuple):
    """A stage as a link of a chain.

    Attributes:
        start: index of its first equation.
        stop: index after its last equation.
        path: file of the function that runs it; empty for a light stage.
        function: name of that function; empty for a light stage.
        line: source line; 0 for a light stage.
        heavy: whether it is worth a checkpoint of its own.
        inputs: outputs of earlier stages that it keeps under a checkpoint: stage and bytes.
        cotangent: bytes of the cotangents of its outputs.
        flops: FLOPs of its forward pass.
        choices: cost of each kind of checkpoint, none first.
    """

    start: int
    stop: int
    path: str
    function: str
    line: int
    heavy: bool
    inputs: tuple[tuple[int, int], ...]
    cotangent: int
    flops: int
    choices: tuple[Choice, ...]

    @property
    def place(self) -> tuple[str, str, int]:
        """The line in its function; stages with the same place get the same checkpoint."""
        return self.path, self.function, self.line


# Stages of one or more functions, in order and without gaps.
Chain = tuple[Link, ...]


def pareto_marked(alternatives: Sequence[Alternative]) -> tuple[Alternative, ...]:
    """Sort alternatives by peak, and mark the Pareto front; the first of equal ones is on it."""
    least: int | None = None
    marked = []
    for one in sorted(alternatives, key=lambda one: (one.peak_bytes, one.flops)):
        best = least is None or one.flops < least
        marked.append(one._replace(pareto=best))
        least = one.flops if best else least
    return tuple(marked)
