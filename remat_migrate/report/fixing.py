"""What there is to say about fixes, besides the findings that are left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..apply import Applied, Outcome
from ..atomic import write_obstacle
from ..engine import Analysis
from ..journal import UndoResult
from .display import Screen, counted

_PLEASE = "this is a defect of the rule, please report it"


def fixed_by_code(outcome: Outcome[Analysis], unwritten: Mapping[Path, str]) -> Mapping[str, int]:
    """How many findings of each code were mended, without those in files that were not written."""
    return Counter(
        applied.finding.code for applied in outcome.applied if not _paths(applied) & set(unwritten)
    )


def defects(outcome: Outcome[Analysis], screen: Screen) -> Iterator[str]:
    """Fixes that were wrong: faults of the tool."""
    for dropped in outcome.dropped:
        finding = dropped.finding
        line, column = finding.source.position(finding.span.start)
        yield (
            f"{screen.path(finding.path)}:{line}:{column}: the fix of {finding.code} was not made,"
            f" because it is wrong: {dropped.reason}; {_PLEASE}"
        )
    for path in outcome.unsettled:
        yield (
            f"{screen.path(path)}: its fixes undo one another or have no end; the file is as it"
            f" was; {_PLEASE}"
        )


def refusals(outcome: Outcome[Analysis], targets: frozenset[Path], screen: Screen) -> Iterator[str]:
    """Files that would have been edited, and why they may not be."""
    refused = Counter(path for item in outcome.refused for path in item.paths)
    for path, number in sorted(refused.items()):
        reason = "was not named; name it, too, to have it fixed"
        if path in targets:
            reason = write_obstacle(path) or "may be written by now; run again"
        yield f"{screen.path(path)} {reason} ({number} fix{'' if number == 1 else 'es'} not made)"


def unwritten_files(unwritten: Mapping[Path, str], screen: Screen) -> Iterator[str]:
    """Files whose fixes could not be written, and why."""
    for path, reason in sorted(unwritten.items()):
        yield f"{screen.path(path)} {reason}; it is as it was"


def undone(result: UndoResult, screen: Screen) -> Iterator[str]:
    """What `undo` did."""
    for path in result.restored:
        yield f"restored {screen.path(path)}"
    for path in result.already:
        yield f"{screen.path(path)} was as before already"
    files = counted(len(result.restored), "file")
    yield f"Restored {files} as before the fixes of {result.created}."


def _paths(applied: Applied) -> set[Path]:
    fix = applied.finding.fix
    return {edit.path for edit in fix.edits} if fix else set()
