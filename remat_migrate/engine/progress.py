"""How whoever waits is told how far a long run is."""

from __future__ import annotations

from collections.abc import Callable

# What is being done, how many steps are done, of how many. When all are, nothing more is shown.
Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """The progress of which nobody is told."""
