"""The result of measuring a function."""

from __future__ import annotations

from dataclasses import dataclass

from .worker.records import Alternative, Cost, Course, Residual, SiteMeasurement


@dataclass(frozen=True, slots=True)
class Measurement:
    """The cost of a function and of each of its checkpoints.

    Attributes:
        target: function, as the user named it.
        jax: version of JAX.
        grad: how the function is differentiated.
        forward_flops: operations of the forward pass.
        cost: cost of the gradient computation as it is.
        bare: cost without any checkpoint.
        sites: its checkpoints.
        compiled_bytes: temporary memory of the compiled program, if compiled.
        alternatives: other placements, the lowest peak first.
        residuals: values that the forward pass keeps, None if not requested.
        jaxprs: jaxprs of the forward and the backward pass as text, None if not requested.
        notes: what could not be measured, and why.
        courses: live bytes over time, as it is and without checkpoints.
    """

    target: str
    jax: str
    grad: str
    forward_flops: int
    cost: Cost
    bare: Cost
    sites: tuple[SiteMeasurement, ...]
    compiled_bytes: int | None = None
    alternatives: tuple[Alternative, ...] = ()
    residuals: tuple[Residual, ...] | None = None
    jaxprs: tuple[str, str] | None = None
    notes: tuple[str, ...] = ()
    courses: tuple[Course, Course] | None = None
