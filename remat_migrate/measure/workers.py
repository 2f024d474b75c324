"""Workers that measure variants of a target at the same time, perhaps on other machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Workers:
    """Processes that run Python functions.

    Attributes:
        call: calls a function with each of several tuples of arguments, and returns the results in
            their order.
        count: how many calls run at the same time.
    """

    call: Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], list[Any]]
    count: int
