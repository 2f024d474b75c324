"""Measurements as text: what each checkpoint saves and costs."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .display import Screen, pluralize, printable

if TYPE_CHECKING:
    from ...measure.devices import Device
    from ...measure.measurement import Measurement
    from ...measure.worker.records import Alternative, Residual, SiteMeasurement
    from ..content import Weighed

_STYLES = {
    "saves": "green",
    "costs-more-than-it-saves": "yellow",
    "does-nothing": "yellow",
    "wasteful": "red",
}
_MIN_WIDTH = 120
_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_OPERATIONS = ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"))


def measurement_lines(weighed: Weighed, screen: Screen) -> Iterator[str]:
    """Yield all measurements of the targets that could be measured."""
    for number, one in enumerate(weighed.found):
        if number:
            yield ""
        yield from _target_lines(one, screen)
        if one.jaxprs is not None:
            yield ""
            yield from _side_by_side(*one.jaxprs, screen)


def _target_lines(found: Measurement, screen: Screen) -> Iterator[str]:
    """Yield all measurements of a target."""
    yield screen.paint(f"{printable(found.target)} {how(found)}", "bold")
    yield from _totals(found)
    for site in found.sites:
        yield ""
        yield from _site(site, found, screen)
    yield from _saved_lines(found, screen)
    if not found.sites:
        yield ""
        yield (
            "It has no checkpoint. To find where checkpoints lower its peak, run"
            " `remat-migrate plan --budget 50%` with the same target and arguments."
        )
    if rows := [one for one in found.alternatives if one.policy]:
        yield ""
        where = "on its checkpoints" if found.sites else "on a checkpoint of the whole function"
        yield from _table(f"Policies {where}", rows, found, screen)
    if others := [one for one in found.alternatives if not one.policy]:
        yield ""
        yield from _table("Alternatives", others, found, screen)
    if found.residuals is not None:
        yield ""
        yield from _residuals(found.residuals, screen)
    if found.device is not None:
        yield ""
        basis = "traced" if found.needed_compiled is None else f"compiled for {found.backend}"
        yield from fit_lines(found.needed_bytes, found.device, basis, screen)
    if found.failed:
        yield ""
        yield screen.paint("Placements that could not be measured:", "red", "bold")
        for reason, names in found.failed.items():
            yield from (f"  {printable(line)}" for line in reason.splitlines())
            yield from (f"    {printable(name)}" for name in names)
    for note in found.notes:
        yield ""
        yield f"note: {printable(note)}"


def how(found: Measurement) -> str:
    """Return how a target is differentiated and traced."""
    grad = "as a training step" if found.is_step else f"under {found.grad}"
    return f"{grad}, traced with jax {found.jax}, {devices(found.devices)}"


def devices(count: int) -> str:
    """Return what numbers refer to."""
    return "one device" if count == 1 else f"each of {count} devices"


def _totals(found: Measurement) -> Iterator[str]:
    yield f"  traced peak   {size(found.cost.peak_bytes)}" + (
        f", without checkpoints {size(found.bare.peak_bytes)}" if found.sites else ""
    )
    share = "included" if found.is_step else "not included"
    if found.argument_bytes:
        yield f"  arguments     {size(found.argument_bytes)}, {share}"
    if found.compiled_bytes is not None:
        kind = f"{compiled_kind(found)}, for {found.backend}"
        yield f"  compiled      {size(found.compiled_bytes)} {kind}"
    more = ""
    if found.sites and found.bare.flops:
        ratio = found.cost.flops / found.bare.flops
        more = f", {ratio:.3f} times those without checkpoints"
    yield f"  operations    {operations(found.cost.flops)}{more}"
    if found.cost.residual_bytes is not None:
        yield f"  kept          {size(found.cost.residual_bytes)} for the backward pass"


def compiled_kind(found: Measurement) -> str:
    """Return which memory of the compiled program is shown."""
    return "in all" if found.is_step else "of temporary memory"


def fit_lines(needed: int, device: Device, basis: str, screen: Screen) -> Iterator[str]:
    """Yield whether a program fits on a device.

    Args:
        needed: bytes that it needs, arguments included.
        device: the device.
        basis: how that is known.
        screen: how to print.
    """
    fits = needed <= device.memory
    text = "fits" if fits else "does not fit"
    yield screen.paint(
        f"It {text} on {printable(device.name)} ({basis}): {size(needed)} of {size(device.memory)}",
        "green" if fits else "red",
        "bold",
    )
    if device.share < 1:
        yield f"  JAX uses {device.share:.0%} of its {size(device.nominal)} by default"


def _site(site: SiteMeasurement, found: Measurement, screen: Screen) -> Iterator[str]:
    place = f"{screen.path(site.path)}:{site.line}"
    calls = [call for call in site.calls if call.line]
    called = ", ".join(f"{screen.path(call.path)}:{call.line}" for call in calls[:3])
    more = f" and {len(calls) - 3} more" if len(calls) > 3 else ""
    called = f"at {called}{more}" if calls else "by JAX itself"
    times = pluralize(site.applications, "application")
    yield f"{place}  {site.api} of {printable(site.function)}, {times}, called {called}"
    verdict = screen.paint(site.verdict.replace("-", " "), _STYLES[site.verdict], "bold")
    yield f"  {verdict}: {effect(site, found)}"
    yield from (f"  {printable(line)}" for line in remarks(site, found))
    if site.is_removable:
        if site.rivals:
            others = ", ".join(f"{screen.path(path)}:{line}" for path, line in site.rivals)
            yield f"  Of this checkpoint and {others}, remove only one, then measure again."
        if site.compiled is None:
            yield "  Before you remove it, confirm this with the compiled program: --compile"
        elif not site.rivals:
            yield "  You can remove it."


def remarks(site: SiteMeasurement, found: Measurement) -> Iterator[str]:
    """Yield what the compiled program needs with and without a checkpoint, and a note."""
    if site.compiled is not None:
        with_it, without = map(size, site.compiled)
        yield (
            f"compiled for {found.backend}: {with_it} of temporary memory with it,"
            f" {without} without"
        )
    if site.note:
        yield site.note


def effect(site: SiteMeasurement, found: Measurement) -> str:
    """Return `traced peak 3.25 GB -> 533 MB (-84%), recomputes 0.72 of a forward pass`."""
    before, after = site.without.peak_bytes, site.cost.peak_bytes
    share = (after - before) / before if before else 0.0
    peak = f"traced peak {size(before)} -> {size(after)} ({share:+.0%})"
    if abs(share) < 0.005:
        peak = f"traced peak unchanged at {size(after)}"
    flops = site.recomputed_flops
    if not flops:
        return peak
    if found.grad == "none" or not found.forward_flops:
        return f"{peak}, recomputes {operations(flops)} ({flops / max(site.without.flops, 1):+.0%})"
    passes = flops / found.forward_flops
    return f"{peak}, recomputes {passes:.2f} of a forward pass ({operations(flops)})"


def _saved_lines(found: Measurement, screen: Screen) -> Iterator[str]:
    """Yield what names and policies save, and why nothing."""
    if found.policies:
        yield ""
        yield "Policies:"
    for one in found.policies:
        kept = "" if one.saved_bytes is None else f"keeps {size(one.saved_bytes)}, "
        yield f"  {screen.path(one.path)}:{one.line}  {printable(one.policy)} " + printable(
            f"matches {', '.join(one.matched) or 'nothing'}: it {kept}avoids"
            f" {operations(one.avoided_flops)} of recomputation, and changes the traced peak by"
            f" {size(one.added_peak_bytes)}"
        )
        if one.is_batched:
            yield "    all products have batch dimensions, as under jax.vmap"
        if one.absent:
            yield f"    it never sees these names: {printable(', '.join(one.absent))}"
    if found.names:
        yield ""
        yield "Names:"
    for name in found.names:
        place = f"{screen.path(name.path)}:{name.line}  " if name.path else ""
        state = name.state.replace("-", " ")
        why = f": {name.reason}" if name.reason else ""
        yield f'  {place}"{printable(name.name)}"  {size(name.bytes)}  {state}{why}'


def _table(
    title: str, rows: Sequence[Alternative], found: Measurement, screen: Screen
) -> Iterator[str]:
    """Yield the policies or placements that were measured."""
    is_compiled = any(one.compiled_bytes is not None for one in rows)
    how = f"traced, and compiled for {found.backend}" if is_compiled else "traced"
    yield f"{title}, {how} (* Pareto-optimal in memory and operations):"

    def shown(count: int | None) -> str:
        return "-" if count is None else size(count)

    columns = {
        "keeps": [shown(one.residual_bytes) for one in rows],
        "recomputes": [operations(one.flops - found.bare.flops) for one in rows],
        "peak": [shown(one.peak_bytes) for one in rows],
        "compiled": [shown(one.compiled_bytes) for one in rows],
    }
    columns = {title: cells for title, cells in columns.items() if any(c != "-" for c in cells)}
    yield " " + "".join(f"{title:>11}" for title in columns)
    for one, cells in zip(rows, zip(*columns.values(), strict=True), strict=True):
        figures = "".join(f"{cell:>11}" for cell in cells)
        line = f"{'*' if one.pareto else ' '}{figures}  {printable(one.policy or one.name)}"
        yield screen.paint(line, "green") if one.pareto else line


def _residuals(rows: Sequence[Residual], screen: Screen) -> Iterator[str]:
    total = sum(row.bytes for row in rows if not row.origin.startswith("from "))
    kept = f"{pluralize(len(rows), 'value')}, {size(total)}"
    yield f"The forward pass keeps {kept} besides arguments:"
    # Layers keep the same residuals, which share a line.
    for row, times in sorted(Counter(rows).items(), key=lambda item: -item[0].bytes * item[1]):
        place = f" at {screen.path(row.path)}:{row.line}" if row.path else ""
        each = f"{times} times " if times > 1 else ""
        yield f"  {each + size(row.bytes):>18}  {row.shape}  {printable(row.origin)}{place}"


def _side_by_side(forward: str, backward: str, screen: Screen) -> Iterator[str]:
    """Yield the lines of two jaxprs in two columns, highlighted on a terminal."""
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.table import Table

    table = Table(padding=(0, 1), box=None, expand=True)
    for title in ("forward computation", "backward computation"):
        table.add_column(title, header_style="bold green", ratio=1, overflow="fold")
    texts = ("\n".join(map(printable, text.splitlines())) for text in (forward, backward))
    table.add_row(*(Syntax(text, "haskell", theme="ansi_dark", word_wrap=True) for text in texts))
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=max(screen.width, _MIN_WIDTH),
        force_terminal=screen.colour,
        color_system="standard" if screen.colour else None,
    )
    console.print(table)
    yield from (line.rstrip() for line in stream.getvalue().splitlines())


def size(count: float) -> str:
    """Format bytes with three digits and a decimal unit."""
    return _scaled(count, _UNITS, "B")


def operations(count: float) -> str:
    """Format floating-point operations with three digits."""
    return _scaled(count, _OPERATIONS, "FLOP")


def _scaled(count: float, units: Sequence[tuple[float, str]], least: str) -> str:
    for scale, unit in units:
        if abs(count) >= scale:
            number = count / scale
            digits = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2
            return f"{number:.{digits}f} {unit}"
    return f"{count:.0f} {least}"
