"""Suppressing findings with `# noqa` comments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..rule import Finding
from ..suppressions import suppress_all
from ..text import SourceFile, apply_edits
from .analyse import Analysis
from .fix_rounds import FileChange


@dataclass(frozen=True, slots=True)
class Suppressed:
    """The result of suppressing findings.

    Attributes:
        changes: the files with new comments.
        added: the number of comments that were added or extended.
        left: the findings for which there is no place for a comment.
    """

    changes: tuple[FileChange, ...]
    added: int
    left: tuple[Finding, ...]


def suppress(analysis: Analysis) -> Suppressed:
    """Return the comments that suppress all findings of an analysis."""
    by_path: dict[Path, list[Finding]] = defaultdict(list)
    for finding in analysis.findings:
        by_path[finding.path].append(finding)
    changes, left, added = [], [], 0
    for path, findings in by_path.items():
        if path in analysis.project.texts or analysis.project.module(path) is None:
            left += findings  # not Python, or not readable
            continue
        before = analysis.source(path)
        after, codes, failed = _suppressed(before, findings)
        added += codes
        left += failed
        if codes:
            changes.append(FileChange(before, after))
    return Suppressed(tuple(changes), added, tuple(left))


def _suppressed(
    source: SourceFile, findings: Sequence[Finding]
) -> tuple[SourceFile, int, list[Finding]]:
    """Return a file with comments, their number, and what is not suppressed."""
    places: dict[tuple[int, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        places[finding.source.position(finding.span.start)[0], finding.code].append(finding)
    changes, impossible = suppress_all(source, places)
    edits = [change.edit() for change in changes]
    left = [finding for place in impossible for finding in places[place]]
    return source.replaced(apply_edits(source.text, edits)), len(changes), left
