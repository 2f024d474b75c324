"""Compute figures from runs: medians, ratios by pair, targets, and tables of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .processes import Spent


@dataclass(frozen=True, slots=True)
class Target:
    """The largest accepted median: a ratio, or CPU seconds."""

    of: Literal["ratio", "s"]
    most: float

    def __str__(self) -> str:
        return f"≤ {self.most:g}" + ("" if self.of == "ratio" else f" {self.of}")


@dataclass(frozen=True, slots=True)
class Row:
    """Runs of remat-migrate, and alternating runs of another tool.

    Attributes:
        what: description of the runs.
        ours: runs of remat-migrate.
        peer: other tool, or the empty string.
        theirs: runs of the other tool, in the same order.
        target: target, or None.
    """

    what: str
    ours: tuple[Spent, ...]
    peer: str = ""
    theirs: tuple[Spent, ...] = ()
    target: Target | None = None

    @property
    def ratios(self) -> tuple[float, ...]:
        """The ratios of CPU times to the other tool, pair by pair."""
        if not self.theirs:
            return ()
        return tuple(a.cpu / b.cpu for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def judged(self) -> float | None:
        """The median that the target applies to."""
        if self.target is None:
            return None
        ratio = self.target.of == "ratio"
        return statistics.median(self.ratios if ratio else [spent.cpu for spent in self.ours])

    @property
    def reached(self) -> bool | None:
        """Whether the target is reached; None without a target."""
        judged = self.judged
        return None if judged is None or self.target is None else judged <= self.target.most

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        spread = ""
        if self.ratios:
            spread = times(statistics.median(self.ratios))
            if len(self.ratios) > 1:
                spread += f" ({times(min(self.ratios))}–{times(max(self.ratios))})"
        return [
            self.what,
            used(self.ours),
            self.peer,
            used(self.theirs) if self.theirs else "",
            spread,
            *told(self.target, self.reached),
        ]


def used(runs: Sequence[Spent]) -> str:
    """Format the medians of runs."""
    cpu = statistics.median(spent.cpu for spent in runs)
    wall = statistics.median(spent.wall for spent in runs)
    peak = statistics.median(spent.peak for spent in runs)
    return f"{seconds(cpu)} · {seconds(wall)} · {peak / 1e6:.0f} MB"


def told(target: Target | None, reached: bool | None) -> list[str]:
    """Format a target, and whether it is reached."""
    return [str(target) if target else "", {True: "yes", False: "**missed**", None: ""}[reached]]


def seconds(value: float) -> str:
    """Format seconds with three significant digits."""
    digits = 3 if value < 0.9995 else 2 if value < 9.995 else 1
    return f"{value:.{digits}f} s"


def times(ratio: float) -> str:
    """Format a ratio with enough digits to tell 1.001 from 1."""
    return f"{ratio:.3f}" if ratio < 9.9995 else f"{ratio:.1f}"


def rows_table(rows: Iterable[Row]) -> str:
    """Return the rows as a Markdown table."""
    head = [
        "what",
        "remat-migrate: CPU · wall · peak",
        "compared with",
        "CPU · wall · peak",
        "ratio of CPU",
        "target",
        "reached",
    ]
    return markdown(head, [row.cells() for row in rows])


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
