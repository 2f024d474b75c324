"""What a run says about its baseline."""

from __future__ import annotations

from collections.abc import Iterator

from ...engine.baseline import Baseline, Comparison
from .display import Screen, pluralize, printable

_MAX_ENTRIES = 20


def written_line(written: Baseline, screen: Screen) -> str:
    """Return what was written to a baseline."""
    number = pluralize(sum(written.counts.values()), "finding")
    files = pluralize(len({path for path, *_ in written.counts}), "file")
    return f"Wrote {number} in {files} to {screen.path(written.file)}."


def stale_lines(found: Comparison, screen: Screen) -> Iterator[str]:
    """Yield the stale entries of a baseline, and how to remove them."""
    file, number = screen.path(found.file), found.stale_count
    verb, pronoun = ("is", "it") if number == 1 else ("are", "them")
    yield (
        f"note: {pluralize(number, 'finding')} of {file} {verb} gone;"
        f" --write-baseline {file} removes {pronoun}"
    )
    for entry in found.stale[:_MAX_ENTRIES]:
        times = f" ({entry.count} times)" if entry.count > 1 else ""
        within = f" in {entry.within}" if entry.within else ""
        yield "  " + printable(f"{entry.path}: {entry.code}{within}: {entry.statement}{times}")
    if (rest := len(found.stale) - _MAX_ENTRIES) > 0:
        yield f"  and {rest} more"
