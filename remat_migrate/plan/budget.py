"""Parse a memory budget: `40%` of the peak without checkpoints, or `8GiB`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import UsageError
from ..measure.devices import Device, parse_bytes

_SHARE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*%")


@dataclass(frozen=True, slots=True)
class Budget:
    """The memory that a gradient computation may use: a share, bytes, or that of a device.

    Attributes:
        text: the budget as the user wrote it.
        share: the share of the peak without checkpoints.
        size: the bytes.
        device: the device whose memory must also hold the arguments.
    """

    text: str
    share: float | None = None
    size: int | None = None
    device: Device | None = None

    def bytes_of(self, peak: int, arguments: int = 0) -> int:
        """Return the budget in bytes.

        Args:
            peak: the peak without checkpoints.
            arguments: bytes of arguments that the peak does not include.
        """
        if self.size is None:
            return int((self.share or 0.0) * peak)
        return max(self.size - arguments, 0) if self.device else self.size


def device_budget(device: Device) -> Budget:
    """Return the memory of a device as a budget."""
    return Budget(device.name, size=device.memory, device=device)


def parse_budget(text: str) -> Budget:
    """Parse a budget.

    Raises:
        UsageError: it is neither a share nor bytes, or it is 0, or more than 100%.
    """
    match = _SHARE.fullmatch(text.strip())
    size = None if match else parse_bytes(text)
    if match is None and size is None:
        raise UsageError(
            f"--budget {text}: expected a share of the peak without checkpoints such as 40%, or"
            " bytes such as 8GiB, 500MB"
        )
    budget = Budget(text, share=float(match[1]) / 100) if match else Budget(text, size=size)
    if not (budget.share or budget.size):
        raise UsageError(f"--budget {text}: the budget must be greater than 0")
    if (budget.share or 0.0) > 1:
        raise UsageError(
            f"--budget {text}: more than the peak without checkpoints; nothing to plan"
        )
    return budget
