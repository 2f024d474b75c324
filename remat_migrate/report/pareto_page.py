"""A page with the measurements, and the alternatives as a picture: memory against operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from .display import Screen
from .weights import measurement_lines, operations, size

if TYPE_CHECKING:
    from ..measure.measurement import Alternative, Measurement

_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 20, 20, 60
_TICKS = 5
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
pre { overflow-x: auto; background: #8881; padding: 1rem; }
table { border-collapse: collapse; }
td, th { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #8884; }
td:last-child, th:last-child { text-align: left; }
svg { max-width: 100%; height: auto; }
svg text { font-size: 12px; fill: currentColor; }
.front { fill: #1a7f37; } .other { fill: #8888; } .axis { stroke: currentColor; stroke-width: 1; }
.step { fill: none; stroke: #1a7f37; stroke-width: 1.5; } tr.front td { font-weight: bold; }
:root { color-scheme: light dark; }
"""


def render(found: Sequence[Measurement], screen: Screen) -> str:
    """The whole page; it loads nothing."""
    plain = Screen(screen.width, False, screen.folder)
    sections = "\n".join(_section(one, plain) for one in found)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>remat-migrate measure</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"{sections}\n</body>\n</html>"
    )


def _section(found: Measurement, screen: Screen) -> str:
    text = "\n".join(measurement_lines(found, screen))
    parts = [f"<h1>{escape(found.target)}</h1>", f"<pre>{escape(text)}</pre>"]
    if found.alternatives:
        parts += [picture(found.alternatives), _table(found)]
    if found.pictures is not None:
        for title, jaxpr in zip(("Forward", "Backward"), found.pictures, strict=True):
            parts.append(f"<h2>{title} computation</h2><pre>{escape(jaxpr)}</pre>")
    return "\n".join(parts)


def picture(alternatives: Sequence[Alternative]) -> str:
    """Peak memory against operations as SVG; the Pareto front is a line of steps."""
    least = min(one.flops for one in alternatives) or 1
    xs = [one.flops / least for one in alternatives]
    ys = [float(one.peak_bytes) for one in alternatives]
    right, top = max(max(xs), 1.01), max(max(ys), 1.0)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - 1) / (right - 1) * (_WIDTH - _LEFT - _RIGHT)
        up = y / top * (_HEIGHT - _TOP - _BOTTOM)
        return _LEFT + across, _HEIGHT - _BOTTOM - up

    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        'aria-label="Peak memory of each alternative against its operations">'
    ]
    parts += _axes(place, right, top)
    front = sorted((x, y) for one, x, y in zip(alternatives, xs, ys, strict=True) if one.pareto)
    parts.append(f'<path class="step" d="{_steps([place(x, y) for x, y in front])}"/>')
    for one, x, y in sorted(
        zip(alternatives, xs, ys, strict=True), key=lambda item: item[0].pareto
    ):
        across, up = place(x, y)
        kind = "front" if one.pareto else "other"
        label = f"{one.name}: {size(one.peak_bytes)}, {operations(one.flops)}"
        parts.append(
            f'<circle class="{kind}" cx="{across:.1f}" cy="{up:.1f}" r="5">'
            f"<title>{escape(label)}</title></circle>"
        )
    return "\n".join([*parts, "</svg>"])


def _axes(place: object, right: float, top: float) -> Iterator[str]:
    assert callable(place)
    (left, bottom), (end, _), (_, upper) = place(1, 0), place(right, 0), place(1, top)
    yield f'<path class="axis" fill="none" d="M{left} {upper}V{bottom}H{end}"/>'
    for tick in range(_TICKS + 1):
        x, y = 1 + (right - 1) * tick / _TICKS, top * tick / _TICKS
        across, _ = place(x, 0)
        _, up = place(1, y)
        yield f'<text x="{across:.1f}" y="{bottom + 18}" text-anchor="middle">{x:.2f}</text>'
        yield f'<text x="{left - 8}" y="{up + 4:.1f}" text-anchor="end">{size(y)}</text>'
    middle = (left + end) / 2
    yield (
        f'<text x="{middle}" y="{bottom + 42}" text-anchor="middle">'
        "operations, as a multiple of the fewest</text>"
    )
    yield (
        f'<text transform="translate(16 {(bottom + upper) / 2}) rotate(-90)" '
        'text-anchor="middle">peak memory</text>'
    )


def _steps(points: Sequence[tuple[float, float]]) -> str:
    if not points:
        return ""
    (x, y), *others = points
    return f"M{x:.1f} {y:.1f}" + "".join(f"H{a:.1f}V{b:.1f}" for a, b in others)


def _table(found: Measurement) -> str:
    least = min(one.flops for one in found.alternatives) or 1
    rows = [
        f'<tr class="{"front" if one.pareto else "other"}"><td>{size(one.peak_bytes)}</td>'
        f"<td>{one.flops / least:.3f}</td>"
        f"<td>{'' if one.compiled_bytes is None else size(one.compiled_bytes)}</td>"
        f"<td>{escape(one.name)}</td></tr>"
        for one in found.alternatives
    ]
    head = "<tr><th>peak</th><th>operations</th><th>compiled</th><th>checkpoints</th></tr>"
    return f"<table>\n{head}\n" + "\n".join(rows) + "\n</table>"
