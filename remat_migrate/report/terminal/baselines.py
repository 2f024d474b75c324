"""What is said about a baseline."""

from __future__ import annotations

from collections.abc import Iterator

from ...engine.baseline import Comparison, Written
from .display import Screen, pluralize, printable

_MOST = 20


def written_lines(written: Written, screen: Screen) -> Iterator[str]:
    """What was written, in a line."""
    entries = written.baseline.entries
    number = sum(entry.count for entry in entries)
    files = pluralize(len({entry.path for entry in entries}), "file")
    more = []
    if written.kept:
        more.append(f"{written.kept} kept that this run did not look for")
    if written.dropped:
        more.append(f"{written.dropped} dropped that are gone")
    parts = f": {', '.join(more)}" if more else ""
    yield (
        f"Wrote {pluralize(number, 'finding')} in {files} to"
        f" {screen.path(written.baseline.file)}{parts}."
    )


def stale_lines(found: Comparison, screen: Screen) -> Iterator[str]:
    """Each entry of a baseline that nothing was found for, and what to do about them."""
    file = screen.path(found.file)
    number = found.stale_count
    yield (
        f"note: {pluralize(number, 'finding')} of {file} {'is' if number == 1 else 'are'} gone;"
        f" --write-baseline {file} takes {'it' if number == 1 else 'them'} out"
    )
    for entry in found.stale[:_MOST]:
        times = f" ({entry.count} times)" if entry.count > 1 else ""
        within = f" in {entry.within}" if entry.within else ""
        yield "  " + printable(f"{entry.path}: {entry.code}{within}: {entry.statement}{times}")
    if (rest := len(found.stale) - _MOST) > 0:
        yield f"  and {rest} more"
