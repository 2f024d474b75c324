"""Parse a memory budget: `40%` of the peak without checkpoints, or `8GiB`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import UsageError
from ..measure.devices import parse_bytes

_SHARE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*%")


@dataclass(frozen=True, slots=True)
class Budget:
    """The memory that a gradient computation may use.

    Attributes:
        text: the budget as the user wrote it, or the name of a device.
        size: the bytes, or the share of the peak without checkpoints.
        is_device: whether it is the memory of a device, which must also hold the arguments.
    """

    text: str
    size: int | float
    is_device: bool = False

    def bytes_of(self, peak: int, arguments: int = 0) -> int:
        """Return the budget in bytes.

        Args:
            peak: the peak without checkpoints.
            arguments: bytes of arguments that the peak does not include.
        """
        if isinstance(self.size, float):
            return int(self.size * peak)
        return max(self.size - self.is_device * arguments, 0)


def parse_budget(text: str) -> Budget:
    """Parse a budget.

    Raises:
        UsageError: it is neither a share nor bytes, or it is 0, or more than 100%.
    """
    match = _SHARE.fullmatch(text.strip())
    size = float(match[1]) / 100 if match else parse_bytes(text)
    if size is None:
        raise UsageError(
            f"--budget {text}: expected a share of the peak without checkpoints such as 40%, or"
            " bytes such as 8GiB, 500MB"
        )
    if not size:
        raise UsageError(f"--budget {text}: the budget must be greater than 0")
    if match and size > 1:
        raise UsageError(
            f"--budget {text}: more than the peak without checkpoints; nothing to plan"
        )
    return Budget(text, size)
