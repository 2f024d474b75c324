"""What measuring finds, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Weight(StrEnum):
    """What a checkpoint does to the gradient computation."""

    SAVES = "saves"
    COSTS_MORE = "costs-more-than-it-saves"
    NOTHING = "does-nothing"
    WASTEFUL = "wasteful"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a gradient computation needs.

    Attributes:
        peak_bytes: the peak of live bytes besides arguments.
        flops: floating-point operations.
        residual_bytes: what the forward pass keeps; None where the function takes gradients itself.
    """

    peak_bytes: int
    flops: int
    residual_bytes: int | None


@dataclass(frozen=True, slots=True)
class CallPlace:
    """A line that calls a checkpointed function, and how often that has it traced."""

    path: Path
    line: int
    times: int


@dataclass(frozen=True, slots=True)
class SiteWeight:
    """What one checkpoint saves and costs.

    Attributes:
        path: the file that applies it.
        line: the line that does.
        api: the function that is applied, as `jax.checkpoint`.
        function: what it is applied to.
        calls: the lines that call that.
        applications: how often it is applied when the function runs once, loops counted.
        cost: the whole function as it is.
        without: the whole function without this checkpoint.
        verdict: what it does.
        compiled: temporary bytes of the compiled program with and without it, if compiled.
        note: what else there is to know.
    """

    path: Path
    line: int
    api: str
    function: str
    calls: tuple[CallPlace, ...]
    applications: int
    cost: Cost
    without: Cost
    verdict: Weight
    compiled: tuple[int, int] | None = None
    note: str = ""

    @property
    def peak_bytes_saved(self) -> int:
        """How much lower the peak is with it."""
        return self.without.peak_bytes - self.cost.peak_bytes

    @property
    def recomputed_flops(self) -> int:
        """The operations that it adds."""
        return self.cost.flops - self.without.flops

    @property
    def residual_bytes_avoided(self) -> int | None:
        """What the forward pass need not keep with it."""
        if self.cost.residual_bytes is None or self.without.residual_bytes is None:
            return None
        return self.without.residual_bytes - self.cost.residual_bytes


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to place checkpoints.

    Attributes:
        name: which, in words.
        peak_bytes: the peak of live bytes.
        flops: floating-point operations.
        compiled_bytes: temporary memory of the compiled program, None where it was not compiled.
        pareto: whether no other alternative is better in peak and operations.
        lines: the lines that it puts under checkpoints.
    """

    name: str
    peak_bytes: int
    flops: int
    compiled_bytes: int | None
    pareto: bool
    lines: tuple[tuple[Path, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Residual:
    """A value that the forward pass keeps.

    Attributes:
        shape: as `float32[8,512]`.
        bytes: its size.
        what: what it is, such as `output of sin`.
        name: what `checkpoint_name` calls it, or nothing.
        path: the file of the line that computes it; None for arguments and constants.
        line: the line, or 0.
    """

    shape: str
    bytes: int
    what: str
    name: str
    path: Path | None
    line: int


# The bytes that are live over a program's course: (operations done before, bytes until the next).
Course = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a function needs, and each of its checkpoints.

    Attributes:
        target: the function, as the user named it.
        jax: the version of JAX.
        grad: how it is differentiated.
        forward_flops: the operations of the function itself.
        cost: its gradient computation as it is.
        bare: the same without any checkpoint.
        sites: its checkpoints.
        compiled_bytes: temporary memory of the compiled program, if it was compiled.
        alternatives: other ways, the cheapest in memory first.
        residuals: what the forward pass keeps, None where it was not asked for.
        pictures: the forward and the backward computation as text, None likewise.
        notes: what could not be done, and why.
        courses: what is live over its course, as it is and without checkpoints, if traced.
    """

    target: str
    jax: str
    grad: str
    forward_flops: int
    cost: Cost
    bare: Cost
    sites: tuple[SiteWeight, ...]
    compiled_bytes: int | None = None
    alternatives: tuple[Alternative, ...] = ()
    residuals: tuple[Residual, ...] | None = None
    pictures: tuple[str, str] | None = None
    notes: tuple[str, ...] = ()
    courses: tuple[Course, Course] | None = None
