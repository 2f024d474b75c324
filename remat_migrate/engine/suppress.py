"""Suppressing findings with `# noqa` comments."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from ..rule import Finding
from ..suppressions import suppress_all
from ..text import apply_edits
from .analyse import Analysis
from .fix_rounds import FileChange


@dataclass(slots=True)
class Suppressed:
    """The result of suppressing findings.

    Attributes:
        changes: the files with new comments.
        added: the number of comments that were added or extended.
        left: the findings for which there is no place for a comment.
    """

    changes: list[FileChange] = field(default_factory=list)
    added: int = 0
    left: list[Finding] = field(default_factory=list)


def suppress(analysis: Analysis) -> Suppressed:
    """Return the comments that suppress all findings of an analysis."""
    by_path: dict[Path, dict[tuple[int, str], list[Finding]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for finding in analysis.findings:
        by_path[finding.path][finding.line, finding.code].append(finding)
    done = Suppressed()
    for path, places in by_path.items():
        impossible = list(places)
        # Nothing can be suppressed in files that are not Python, or not readable.
        if path not in analysis.project.texts and analysis.project.module(path) is not None:
            source = analysis.source(path)
            comments, impossible = suppress_all(source, places)
            edits = [comment.edit() for comment in comments]
            if edits:
                after = source.replaced(apply_edits(source.text, edits))
                done.changes.append(FileChange(source, after))
            done.added += len(edits)
        done.left += [finding for place in impossible for finding in places[place]]
    return done
