"""The charts of a page as coordinates that `templates/charts.html` draws as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from ..terminal.weights import operations, size

if TYPE_CHECKING:
    from ...measure.measurement import Measurement
    from ...measure.worker.records import Alternative, Course

_TICKS = 5


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart; coordinates are those of the SVG.

    Attributes:
        title: what it shows.
        description: what it shows, for readers who do not see it.
        x_title: the title of the lower axis.
        x_ticks: position and label of each tick of the lower axis.
        y_ticks: likewise of the left axis.
        lines: the CSS class and the path of each line.
        points: the CSS class, x, y and tooltip of each point.
    """

    WIDTH: ClassVar[int] = 640
    HEIGHT: ClassVar[int] = 320
    LEFT: ClassVar[int] = 74
    RIGHT: ClassVar[int] = 626
    TOP: ClassVar[int] = 14
    BOTTOM: ClassVar[int] = 274

    title: str
    description: str
    x_title: str
    x_ticks: Sequence[tuple[str, str]]
    y_ticks: Sequence[tuple[str, str]]
    lines: Sequence[tuple[str, str]]
    points: Sequence[tuple[str, str, str, str]] = ()


@dataclass(frozen=True, slots=True)
class _Scale:
    """Maps values to the coordinates of a chart; the vertical axis starts at 0."""

    left: float
    right: float
    top: float

    def x(self, value: float) -> str:
        share = (value - self.left) / ((self.right - self.left) or 1)
        return _number(Chart.LEFT + share * (Chart.RIGHT - Chart.LEFT))

    def y(self, value: float) -> str:
        share = value / (max(self.top, 1.0) * 1.04)
        return _number(Chart.BOTTOM - share * (Chart.BOTTOM - Chart.TOP))

    def x_ticks(self, label: Callable[[float], str]) -> list[tuple[str, str]]:
        step = (self.right - self.left) / _TICKS
        values = [self.left + step * number for number in range(_TICKS + 1)]
        return [(self.x(value), label(value) if value else "0") for value in values]

    def y_ticks(self) -> list[tuple[str, str]]:
        return [(self.y(value), size(value)) for value in _round_ticks(self.top)]


def pareto(found: Measurement) -> Chart:
    """Return the chart of peak memory against operations, with the Pareto front as a line."""
    least = min(one.flops for one in found.alternatives) or 1
    # Points on the front come last, so that no other point covers them.
    points = sorted(
        ((one.flops / least, one.peak_bytes, one) for one in found.alternatives),
        key=lambda point: point[2].pareto,
    )
    scale = _Scale(1.0, max(1.01, *(x for x, _, _ in points)), max(y for _, y, _ in points))
    front = sorted((x, y) for x, y, one in points if one.pareto)
    best = min(found.alternatives, key=lambda one: one.peak_bytes)
    return Chart(
        "Peak memory of each placement against its operations",
        f"{len(points)} placements, {len(front)} of them on the Pareto front. The lowest peak:"
        f" {_tooltip(best)}",
        f"operations, as a multiple of the fewest ({operations(least)})",
        scale.x_ticks("{:.2f}".format),
        scale.y_ticks(),
        [("now", _steps(front, scale))] if front else [],
        [
            ("front" if one.pareto else "other", scale.x(x), scale.y(y), _tooltip(one))
            for x, y, one in points
        ],
    )


def course(found: Measurement) -> Chart:
    """Return the chart of live bytes over the operations, with and without checkpoints."""
    assert found.courses is not None
    now, bare = found.courses
    top = max(live for one in found.courses for _, live in one)
    scale = _Scale(0.0, max(now[-1][0], bare[-1][0], 1), top)
    description = f"The peak is {size(found.cost.peak_bytes)}"
    lines = [("now", _steps(_changes(now), scale))]
    if found.sites:
        description += f", without checkpoints {size(found.bare.peak_bytes)}"
        lines.insert(0, ("bare", _steps(_changes(bare), scale)))
    return Chart(
        "Memory over the course of the gradient computation",
        description,
        "operations done",
        scale.x_ticks(operations),
        scale.y_ticks(),
        lines,
    )


def _tooltip(one: Alternative) -> str:
    return f"{one.name}: {size(one.peak_bytes)}, {operations(one.flops)}"


def _changes(points: Course) -> list[tuple[float, float]]:
    """Return the points at which the value changes, and the end."""
    changes = [after for before, after in pairwise(points) if after[1] != before[1]]
    return [points[0], *changes, (points[-1][0], (changes or points)[-1][1])]


def _steps(points: Sequence[tuple[float, float]], scale: _Scale) -> str:
    """Return the path of a line that keeps each height until the next point."""
    (x, y), *rest = points
    steps = "".join(f"H{scale.x(x)}V{scale.y(y)}" for x, y in rest)
    return f"M{scale.x(x)} {scale.y(y)}{steps}"


def _round_ticks(top: float) -> list[float]:
    """Return about four round numbers from 0 to `top`."""
    if top <= 0:
        return [0.0]
    raw = top / 4
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(scale * nice for nice in (1, 2, 2.5, 5, 10) if scale * nice >= raw)
    return [step * number for number in range(int(top / step) + 1)]


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
