"""What a run says about its fixes, besides the findings that are left."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...engine.fix_rounds import FixOutcome, Refused
from ...engine.integrity import Obstacle
from ...rule import Finding, Safety
from ...text.regular_files import write_obstacle
from .display import Screen, pluralize

if TYPE_CHECKING:
    from ...engine.undo import UndoResult

_REPORT = "this is a bug in the rule, please report it"
# With more files than this the suggested command names their folder.
_MAX_NAMED = 8


def not_made(outcome: FixOutcome, screen: Screen) -> Iterator[tuple[bool, str]]:
    """Yield why fixes were not made, each after whether the rule is wrong."""
    for dropped in outcome.dropped:
        finding = dropped.finding
        place = screen.place(finding.source, finding.span.start)
        is_defect = not isinstance(dropped.reason, Obstacle)
        text = f"{place}: the fix of {finding.code} was not made: {dropped.reason}"
        yield is_defect, f"{text}; {_REPORT}" if is_defect else text
    for path in outcome.oscillating:
        why = "its fixes undo one another or never end; the file is unchanged"
        yield True, f"{screen.path(path)}: {why}; {_REPORT}"


def refusals(
    outcome: FixOutcome,
    targets: frozenset[Path],
    excluded: Callable[[Path], bool],
    screen: Screen,
) -> Iterator[str]:
    """Yield the files that fixes may not edit, why, and a command that includes them.

    Args:
        outcome: the fixes.
        targets: the files that may be edited.
        excluded: whether the settings exclude a file.
        screen: where the lines are shown.
    """
    refused = Counter(path for item in outcome.refused for path in item.paths)
    for path, number in sorted(refused.items()):
        if path in targets:
            reason = write_obstacle(path) or "is writable again; run again"
        elif excluded(path):
            reason = "is excluded by the settings"
        else:
            reason = "was not named"
        yield f"{screen.path(path)} {reason} ({number} fix{'' if number == 1 else 'es'} not made)"
    unnamed = [item for item in outcome.refused if not targets.issuperset(item.paths)]
    if unnamed:
        yield f"to fix {'it' if len(refused) == 1 else 'them'}: {_command(unnamed, screen)}"


def _command(refused: Sequence[Refused], screen: Screen) -> str:
    """Return the command line that makes the refused fixes."""
    paths = {path for item in refused for path in _paths(item.finding)}
    named = sorted(paths | {item.finding.path for item in refused})
    if len(named) > _MAX_NAMED:
        named = [Path(os.path.commonpath([path.parent for path in named]))]
    safeties = {item.finding.fix.safety for item in refused if item.finding.fix}
    options = ["--fix", "--unsafe-fixes"] if Safety.UNSAFE in safeties else ["--fix"]
    return shlex.join(["remat-migrate", *options, *map(screen.path, named)])


def undone(result: UndoResult, screen: Screen) -> Iterator[str]:
    """Yield what `undo` restored."""
    for path in result.restored:
        yield f"restored {screen.path(path)}"
    for path in result.unchanged:
        yield f"{screen.path(path)} is already as it was before"
    files = pluralize(len(result.restored), "file")
    yield f"Restored {files} to its state before the fixes of {result.created}."


def _paths(finding: Finding) -> set[Path]:
    fix = finding.fix
    return set(fix.paths) if fix else set()
