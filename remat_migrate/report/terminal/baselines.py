"""What a run says about its baseline."""

from __future__ import annotations

from collections.abc import Iterator

from ...engine.baseline import Comparison, Written
from .display import Screen, pluralize, printable

_MAX_ENTRIES = 20


def written_lines(written: Written, screen: Screen) -> Iterator[str]:
    """Yield what was written to a baseline."""
    entries = written.baseline.entries
    number = pluralize(sum(entry.count for entry in entries), "finding")
    files = pluralize(len({entry.path for entry in entries}), "file")
    kinds = {"kept that this run did not look for": written.kept, "gone": written.dropped}
    details = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
    suffix = f": {details}" if details else ""
    yield f"Wrote {number} in {files} to {screen.path(written.baseline.file)}{suffix}."


def stale_lines(found: Comparison, screen: Screen) -> Iterator[str]:
    """Yield the stale entries of a baseline, and how to remove them."""
    file, number = screen.path(found.file), sum(entry.count for entry in found.stale)
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
