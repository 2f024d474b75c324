"""Parse a memory budget: `40%` of the peak without checkpoints, or `8GiB`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ..errors import UsageError

_FORM = re.compile(r"(?P<number>\d+(?:\.\d+)?|\.\d+)\s*(?P<unit>%|[A-Za-z]*)")
_UNITS = {
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
}


@dataclass(frozen=True, slots=True)
class Budget:
    """The memory that a gradient computation may use: a share or bytes.

    Attributes:
        text: the budget as the user wrote it.
        share: the share of the peak without checkpoints.
        size: the bytes.
    """

    text: str
    share: float | None = None
    size: int | None = None

    def bytes_of(self, peak: int) -> int:
        """Return the budget in bytes, given the peak without checkpoints."""
        return self.size if self.size is not None else int((self.share or 0.0) * peak)


def parse_budget(text: str) -> Budget:
    """Parse a budget.

    Raises:
        UsageError: it is neither a share nor bytes, or it is 0, or more than 100%.
    """
    match = _FORM.fullmatch(text.strip())
    unit = match["unit"].lower() if match else ""
    if match is None or not unit or (unit != "%" and unit not in _UNITS):
        raise UsageError(
            f"--budget {text}: expected a share of the peak without checkpoints such as 40%, or"
            " bytes such as 8GiB, 500MB"
        )
    number = float(match["number"])
    if unit == "%":
        if number > 100:
            raise UsageError(
                f"--budget {text}: more than the peak without checkpoints; nothing to plan"
            )
        budget = Budget(text, share=number / 100)
    else:
        size = number * _UNITS[unit]
        if size == math.inf:
            raise UsageError(f"--budget {text}: the budget is too large")
        budget = Budget(text, size=int(size))
    if not (budget.share or budget.size):
        raise UsageError(f"--budget {text}: the budget must be greater than 0")
    return budget
