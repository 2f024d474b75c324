"""The result of measuring a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .devices import Device
from .worker.records import Alternative, Cost, NameUse, PolicyUse, Residual, SiteMeasurement


@dataclass(frozen=True, slots=True)
class Measurement:
    """The cost of a function and of each of its checkpoints.

    Attributes:
        target: function, as the user named it.
        jax: version of JAX.
        backend: platform that programs are compiled for.
        grad: how the function is differentiated.
        forward_flops: operations of the forward pass.
        cost: cost of the gradient computation as it is.
        bare: cost without any checkpoint.
        sites: its checkpoints.
        compiled_bytes: temporary memory of the compiled program, if compiled.
        alternatives: other placements, the lowest peak first.
        residuals: values that the forward pass keeps, None if not requested.
        jaxprs: jaxprs of the forward and the backward pass as text, None if not requested.
        failed: placements that could not be measured, by the reason.
        notes: what else could not be measured, and why.
        argument_bytes: bytes of the arguments on each device.
        devices: number of devices that the arguments are sharded over.
        is_random: whether the function draws random numbers.
        needed_compiled: memory of the compiled program on each device, if compiled.
        device: the device to fit on, if requested.
        names: what becomes of the values that `checkpoint_name` names.
        policies: what the policies of its checkpoints save.
    """

    target: str
    jax: str
    backend: str
    grad: str
    forward_flops: int
    cost: Cost
    bare: Cost
    sites: tuple[SiteMeasurement, ...]
    compiled_bytes: int | None = None
    alternatives: tuple[Alternative, ...] = ()
    residuals: tuple[Residual, ...] | None = None
    jaxprs: tuple[str, str] | None = None
    failed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    argument_bytes: int = 0
    devices: int = 1
    is_random: bool = False
    needed_compiled: int | None = None
    device: Device | None = None
    names: tuple[NameUse, ...] = ()
    policies: tuple[PolicyUse, ...] = ()

    @property
    def needed_bytes(self) -> int:
        """Memory that it needs on each device, arguments included."""
        if self.needed_compiled is not None:
            return self.needed_compiled
        return self.cost.peak_bytes + (0 if self.is_step else self.argument_bytes)

    @property
    def fits(self) -> bool:
        """Whether it fits on the device, if there is one."""
        return self.device is None or self.needed_bytes <= self.device.memory

    @property
    def is_step(self) -> bool:
        """Whether it is a training step, whose peak includes its arguments."""
        return self.grad == "none"
