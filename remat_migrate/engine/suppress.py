"""Suppressing findings with `# noqa` comments."""

from __future__ import annotations

import tokenize
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from ..rule import Finding
from ..suppressions import Directive, logical_lines
from ..text import Edit, SourceFile, apply_edits
from .analyse import Analysis
from .fix_rounds import FileChange


def suppress(analysis: Analysis) -> tuple[list[FileChange], list[Finding]]:
    """Return the files with comments that suppress all findings of an analysis, and the findings
    for which there is no place for a comment.
    """
    changes: list[FileChange] = []
    left: list[Finding] = []
    by_path: dict[Path, list[Finding]] = defaultdict(list)
    for finding in analysis.findings:
        by_path[finding.path].append(finding)
    for path, findings in by_path.items():
        # Nothing can be suppressed in files that are not Python, or not readable.
        if path in analysis.project.texts or analysis.project.module(path) is None:
            left += findings
            continue
        source = analysis.source(path)
        edits, impossible = suppress_all(source, findings)
        left += impossible
        if edits:
            after = source.replaced(apply_edits(source.text, edits))
            changes.append(FileChange(source, after))
    return changes, left


def suppress_all(
    source: SourceFile, findings: Sequence[Finding]
) -> tuple[list[Edit], list[Finding]]:
    """Return the edits that suppress findings in a Python file, and the findings without a place
    for a comment.

    Extends an existing `# noqa` with codes on the logical line; otherwise adds one at its end.
    """
    try:
        lines = list(logical_lines(source))
    except (SyntaxError, tokenize.TokenError):
        return [], list(findings)
    by_row = {row: line for line in lines for row in line.rows}
    directives = (d for line in lines for d in line.directives(source.text) if d.codes)
    extended = {row: directive for directive in directives for row in directive.lines}
    # Per logical line: the directive to extend, or the line to add a comment to, and the codes.
    wanted: dict[range, tuple[Directive | int, list[str]]] = {}
    left: list[Finding] = []
    for finding in findings:
        line = by_row.get(finding.line)
        if line is None:
            left.append(finding)
            continue
        at = extended.get(finding.line) or line.rows[-1]
        codes = wanted.setdefault(line.rows, (at, []))[1]
        if finding.code not in codes:
            codes.append(finding.code)
    return [_with_codes(source, at, codes) for at, codes in wanted.values()], left


def _with_codes(source: SourceFile, at: Directive | int, codes: Sequence[str]) -> Edit:
    """Return the edit that adds codes to a directive, or at the end of a line."""
    if isinstance(at, Directive):
        return Edit(source.path, at.span.end, at.span.end, f", {', '.join(codes)}")
    text, start = source.line_text(at), source.line_starts[at - 1]
    # Replace trailing whitespace.
    place = start + len(text.rstrip()), start + len(text)
    return Edit(source.path, *place, f"  # noqa: {', '.join(codes)}")
