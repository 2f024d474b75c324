"""The callback that long-running steps report their progress to."""

from __future__ import annotations

from collections.abc import Callable

# Takes the current step's description, the steps done, and the total number of steps.
Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Ignore progress."""
