"""What there is to say about fixes, besides the findings that are left."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...engine.analyse import Analysis
from ...engine.fix_rounds import Dropped, FixOutcome, Refused
from ...rule import Finding, Safety
from ...text.atomic import write_obstacle
from .display import Screen, pluralize

if TYPE_CHECKING:
    from ...engine.journal import WriteError
    from ...engine.undo import UndoResult

_PLEASE = "this is a defect of the rule, please report it"
# With more files than this their folder is named.
_MOST_NAMED = 8


def fixed_by_code(
    outcome: FixOutcome[Analysis], unwritten: Mapping[Path, str]
) -> Mapping[str, int]:
    """How many findings of each code were mended, without those in files that were not written."""
    return Counter(
        finding.code for finding in outcome.fixed if not _paths(finding) & set(unwritten)
    )


def defects(outcome: FixOutcome[Analysis], screen: Screen) -> Iterator[str]:
    """Fixes that were wrong: faults of the tool."""
    for dropped in outcome.dropped:
        if not _is_unreadable(dropped):
            yield f"{_not_made(dropped, screen)}; {_PLEASE}"
    for path in outcome.oscillating:
        yield (
            f"{screen.path(path)}: its fixes undo one another or have no end; the file is as it"
            f" was; {_PLEASE}"
        )


def unreadable(outcome: FixOutcome[Analysis], screen: Screen) -> Iterator[str]:
    """Fixes that were not made because LibCST does not understand the code."""
    for dropped in outcome.dropped:
        if _is_unreadable(dropped):
            yield _not_made(dropped, screen)


def _is_unreadable(dropped: Dropped) -> bool:
    fix = dropped.finding.fix
    return fix is not None and fix.is_unreadable


def _not_made(dropped: Dropped, screen: Screen) -> str:
    finding = dropped.finding
    place = f"{screen.path(finding.path)}:{finding.source.place(finding.span.start)}"
    return f"{place}: the fix of {finding.code} was not made: {dropped.reason}"


def refusals(
    outcome: FixOutcome[Analysis],
    targets: frozenset[Path],
    excluded: Callable[[Path], bool],
    screen: Screen,
) -> Iterator[str]:
    """Files that would have been edited, why they may not be, and what to run to have them edited.

    Args:
        outcome: the fixes.
        targets: the files that may be edited.
        excluded: whether the settings exclude a file.
        screen: where it is shown.
    """
    refused = Counter(path for item in outcome.refused for path in item.paths)
    for path, number in sorted(refused.items()):
        if path in targets:
            reason = write_obstacle(path) or "may be written by now; run again"
        elif excluded(path):
            reason = "is excluded by the settings"
        else:
            reason = "was not named"
        yield f"{screen.path(path)} {reason} ({number} fix{'' if number == 1 else 'es'} not made)"
    unnamed = [item for item in outcome.refused if not targets.issuperset(item.paths)]
    if unnamed:
        yield f"to have {'it' if len(refused) == 1 else 'them'} fixed: {_command(unnamed, screen)}"


def _command(refused: Sequence[Refused], screen: Screen) -> str:
    """The command line that makes fixes which were not made for files that were not named."""
    paths = {path for item in refused for path in _paths(item.finding)}
    named = sorted(paths | {item.finding.path for item in refused})
    if len(named) > _MOST_NAMED:
        named = [Path(os.path.commonpath([path.parent for path in named]))]
    safeties = {item.finding.fix.safety for item in refused if item.finding.fix}
    options = "--fix --unsafe-fixes" if Safety.UNSAFE in safeties else "--fix"
    return shlex.join(["remat-migrate", *options.split(), *map(screen.path, named)])


def unwritten_files(error: WriteError, screen: Screen) -> Iterator[str]:
    """Files whose fixes could not be written, and why; what the system is to blame for are errors.

    With them what could not be brought to its end though the files are written.
    """
    for path, reason in sorted(error.failures.items()):
        grade = "error" if path in error.faults else "warning"
        end = "" if path in error.stuck else "; it is as it was"
        yield f"{grade}: {screen.path(path)} {reason}{end}"
    for line in error.unsettled:
        yield f"error: {line}"


def put_back(paths: Sequence[Path], screen: Screen) -> Iterator[str]:
    """What a run that was killed had left half done."""
    for path in paths:
        yield f"note: put back {screen.path(path)}: a run that was killed had made half of its fix"


def undone(result: UndoResult, screen: Screen) -> Iterator[str]:
    """What `undo` did."""
    for path in result.restored:
        yield f"restored {screen.path(path)}"
    for path in result.unchanged:
        yield f"{screen.path(path)} was as before already"
    files = pluralize(len(result.restored), "file")
    yield f"Restored {files} as before the fixes of {result.created}."


def _paths(finding: Finding) -> set[Path]:
    fix = finding.fix
    return set(fix.paths) if fix else set()
