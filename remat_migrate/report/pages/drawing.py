"""Pictures as inline SVG: the Pareto front, memory over a program's course, shares as a bar.

Colours come from the page by classes, so that they suit light, dark and paper; every picture has a
title and a description for those who do not see it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from ..terminal.display import printable
from ..terminal.weights import operations, size

if TYPE_CHECKING:
    from ...measure.measurement import Measurement
    from ...measure.worker.records import Alternative, Course

_WIDTH, _HEIGHT = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 14, 14, 46
_TICKS = 5


def pareto(found: Measurement, name: str) -> str:
    """Peak memory of each alternative against its operations; the Pareto front is a line of steps.

    Args:
        found: what was measured, with alternatives.
        name: begins the ids in the picture; unique in a page.
    """
    least = min(one.flops for one in found.alternatives) or 1
    points = [(one.flops / least, float(one.peak_bytes), one) for one in found.alternatives]
    right = max(max(x for x, _, _ in points), 1.01)
    across, up, axes = _plane(1.0, right, max(y for _, y, _ in points), "{:.2f}".format)
    front = sorted((x, y) for x, y, one in points if one.pareto)
    steps = [(across(x), up(y)) for x, y in front]
    parts = [*axes(f"operations, as a multiple of the fewest ({operations(least)})")]
    if steps:
        line = f"M{_n(steps[0][0])} {_n(steps[0][1])}"
        line += "".join(f"H{_n(a)}V{_n(b)}" for a, b in steps[1:])
        parts.append(f'<path class="line now" d="{line}"/>')
    # Those on the front last, so that none of them is covered.
    for x, y, one in sorted(points, key=lambda point: point[2].pareto):
        kind = "front" if one.pareto else "other"
        parts.append(
            f'<circle class="{kind}" cx="{_n(across(x))}" cy="{_n(up(y))}"'
            f' r="{5 if one.pareto else 3.5}"><title>{_text(_told(one))}</title></circle>'
        )
    best = min(found.alternatives, key=lambda one: one.peak_bytes)
    about = (
        f"{len(points)} placements, {len(front)} of them on the Pareto front. The lowest peak:"
        f" {_told(best)}"
    )
    return _picture(name, "Peak memory of each placement against its operations", about, parts)


def course(found: Measurement, name: str) -> str:
    """Live bytes over a program's operations, as it is and without checkpoints.

    Args:
        found: what was measured, with its courses.
        name: begins the ids in the picture; unique in a page.
    """
    assert found.courses is not None
    now, bare = found.courses
    last = max(now[-1][0], bare[-1][0], 1)
    top = max(live for one in found.courses for _, live in one)
    across, up, axes = _plane(0.0, float(last), float(top), operations)
    parts = [*axes("operations done")]
    if found.sites:
        parts.append(f'<path class="line bare" d="{_stairs(bare, across, up)}"/>')
    parts.append(f'<path class="line now" d="{_stairs(now, across, up)}"/>')
    about = f"As it is the peak is {size(found.cost.peak_bytes)}"
    if found.sites:
        about += f", without checkpoints {size(found.bare.peak_bytes)}"
    return _picture(name, "Memory over the course of the gradient computation", about, parts)


def shares(counts: Sequence[tuple[str, int]], whole: int, name: str) -> str:
    """Numbers by risk as one bar, whose length is to `whole` as their sum."""
    total = sum(count for _, count in counts)
    told = ", ".join(f"{count} {risk}" for risk, count in counts if count)
    parts = []
    at = 0.0
    for risk, count in counts:
        width = 100 * count / max(whole, 1)
        if count:
            parts.append(
                f'<rect class="risk-{escape(risk)}" x="{_n(at)}" y="0" width="{_n(width)}"'
                ' height="10"/>'
            )
        at += width
    return (
        f'<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img"'
        f' aria-labelledby="{name}-t"><title id="{name}-t">{total}: {told or "none"}</title>'
        f"{''.join(parts)}</svg>"
    )


def _told(one: Alternative) -> str:
    return f"{printable(one.name)}: {size(one.peak_bytes)}, {operations(one.flops)}"


def _stairs(points: Course, across: Callable[[float], float], up: Callable[[float], float]) -> str:
    """A line that stays at each height until the next point; what looks the same is left out."""
    line = [f"M{_n(across(points[0][0]))} {_n(up(points[0][1]))}"]
    for (_, before), (done, live) in itertools.pairwise(points):
        if live != before:
            line.append(f"H{_n(across(done))}V{_n(up(live))}")
    return "".join([*line, f"H{_n(across(points[-1][0]))}"])


def _plane(
    left: float,
    right: float,
    top: float,
    shown: Callable[[float], str],
) -> tuple[Callable[[float], float], Callable[[float], float], Callable[[str], Iterator[str]]]:
    """The coordinates of a value across and up, and the axes with a title for the lower one."""
    ticks_up = _round_ticks(top)
    top = max(top, 1.0) * 1.04

    def across(x: float) -> float:
        return _LEFT + (x - left) / ((right - left) or 1) * (_WIDTH - _LEFT - _RIGHT)

    def up(y: float) -> float:
        return _HEIGHT - _BOTTOM - y / top * (_HEIGHT - _TOP - _BOTTOM)

    def axes(title: str) -> Iterator[str]:
        bottom, end = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        for y in ticks_up:
            at = _n(up(y))
            yield f'<path class="grid" d="M{_LEFT} {at}H{end}"/>'
            yield f'<text x="{_LEFT - 8}" y="{at}" dy=".32em" text-anchor="end">{size(y)}</text>'
        for tick in range(_TICKS + 1):
            x = left + (right - left) * tick / _TICKS
            anchor = "end" if tick == _TICKS else "middle"
            label = "0" if x == 0 else shown(x)
            at = _n(across(x))
            yield f'<text x="{at}" y="{bottom + 17}" text-anchor="{anchor}">{label}</text>'
        yield f'<path class="axis" d="M{_LEFT} {bottom}H{end}"/>'
        yield (
            f'<text x="{(_LEFT + end) // 2}" y="{bottom + 38}" text-anchor="middle">'
            f"{_text(title)}</text>"
        )

    return across, up, axes


def _round_ticks(top: float) -> list[float]:
    """Round numbers from 0 to `top`, about four."""
    if top <= 0:
        return [0.0]
    raw = top / 4
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(scale * nice for nice in (1, 2, 2.5, 5, 10) if scale * nice >= raw)
    return [step * number for number in range(int(top / step) + 1)]


def _picture(name: str, title: str, about: str, parts: Sequence[str]) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
        f' aria-labelledby="{name}-t {name}-d"><title id="{name}-t">{_text(title)}</title>'
        f'<desc id="{name}-d">{_text(about)}</desc>{"".join(parts)}</svg>'
    )


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _text(text: str) -> str:
    return escape(printable(text))
