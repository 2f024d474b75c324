"""A memory budget as a user writes it: `40%` of the peak without checkpoints, or `8GiB`."""

from __future__ import annotations

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
    """What a gradient computation may need.

    Attributes:
        text: as the user wrote it.
        share: of the peak without checkpoints; None where bytes are given.
        size: bytes; None where a share is given.
    """

    text: str
    share: float | None = None
    size: int | None = None

    def bytes_of(self, peak: int) -> int:
        """The bytes, where the peak without checkpoints is known."""
        return self.size if self.size is not None else int((self.share or 0.0) * peak)


def parse_budget(text: str) -> Budget:
    """The budget that `text` names.

    Raises:
        UsageError: it is neither a share nor bytes, it is nothing, or more than the whole.
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
                f"--budget {text}: more than the peak without checkpoints: nothing is to be planned"
            )
        budget = Budget(text, share=number / 100)
    else:
        budget = Budget(text, size=int(number * _UNITS[unit]))
    if not (budget.share or budget.size):
        raise UsageError(f"--budget {text}: no memory at all: give more than nothing")
    return budget
