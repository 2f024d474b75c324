"""Measurements as text: what each checkpoint saves and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .display import Screen, pluralize, printable

if TYPE_CHECKING:
    from ...measure.devices import Device
    from ...measure.measurement import Measurement
    from ...measure.worker.records import Alternative, Residual, SiteMeasurement

_STYLES = {
    "saves": "green",
    "costs-more-than-it-saves": "yellow",
    "does-nothing": "yellow",
    "wasteful": "red",
}
_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_OPERATIONS = ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"))


def measurement_lines(found: Measurement, screen: Screen) -> Iterator[str]:
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
            "It has no checkpoint. To find where checkpoints lower its peak:"
            f" `remat-migrate plan {printable(found.target)} --budget 50%`"
        )
    if rows := [one for one in found.alternatives if one.policy]:
        yield ""
        where = "on its checkpoints" if found.sites else "on a checkpoint of the whole function"
        yield f"Policies {where}, traced (* Pareto-optimal in memory and operations):"
        yield from _policy_table(rows, found, screen)
    if others := [one for one in found.alternatives if not one.policy]:
        yield ""
        yield "Alternatives, traced (* Pareto-optimal in memory and operations):"
        yield from _table(others, found, screen)
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


def _policy_table(rows: Sequence[Alternative], found: Measurement, screen: Screen) -> Iterator[str]:
    yield f"  {'keeps':>9} {'recomputes':>11} {'peak':>9} {'compiled':>9}  policy"
    for one in rows:
        kept = "-" if one.residual_bytes is None else size(one.residual_bytes)
        again = operations(one.flops - found.bare.flops)
        compiled = "-" if one.compiled_bytes is None else size(one.compiled_bytes)
        figures = f"{kept:>9} {again:>11} {size(one.peak_bytes):>9} {compiled:>9}"
        mark = "*" if one.pareto else " "
        yield f"{mark} {figures}  {printable(one.policy)}"


def _table(rows: Sequence[Alternative], found: Measurement, screen: Screen) -> Iterator[str]:
    for one in rows:
        mark = "*" if one.pareto else " "
        ratio = one.flops / found.bare.flops if found.bare.flops else 1.0
        compiled = ""
        if one.compiled_bytes is not None:
            compiled = f"  compiled for {found.backend} {size(one.compiled_bytes):>8}"
        line = f"{mark} {size(one.peak_bytes):>8}  x{ratio:.3f}{compiled}  {printable(one.name)}"
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
