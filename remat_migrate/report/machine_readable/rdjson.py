"""The `rdjson` format: reviewdog's diagnostics, with fixes that a reviewer applies with a click.

https://github.com/reviewdog/reviewdog/tree/master/proto/rdf
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from ...discovery.roots import repository
from ...rule import Finding
from ...text import SourceFile, Span
from ..content import Report, worst_first
from ..terminal.display import Screen, printable
from .shared import encodable, fix_lines, on_disk, portable_path, region

_SEVERITIES = {"error": "ERROR", "warning": "WARNING", "note": "INFO"}


def render(report: Report, screen: Screen) -> str:
    """Return the document, the worst finding first; columns count UTF-8 bytes."""
    folder = repository(report.root)
    document = {
        "source": {"name": "remat-migrate"},
        "diagnostics": [
            _diagnostic(finding, report, folder) for finding in worst_first(report.findings)
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _diagnostic(finding: Finding, report: Report, folder: Path) -> dict[str, object]:
    url = {"url": finding.url} if finding.url else {}
    related = [
        {"message": printable(one.message), "location": _location(one.source, one.span, folder)}
        for one in dict.fromkeys(finding.related)
    ]
    suggestions = _suggestions(finding, report)
    return {
        "message": "\n".join((printable(finding.message), *fix_lines(finding))),
        "location": _location(finding.source, finding.span, folder),
        "severity": _SEVERITIES[finding.severity],
        "code": {"value": finding.code, **url},
        **({"suggestions": suggestions} if suggestions else {}),
        **({"related_locations": related} if related else {}),
    }


def _suggestions(finding: Finding, report: Report) -> list[dict[str, object]]:
    """Return the fix as one suggestion, or none if it edits several files or distant lines.

    A reviewer applies each suggestion on its own, which would apply part of such a fix.
    """
    if finding.fix is None or finding.fix.paths != {finding.path}:
        return []
    source = report.sources[finding.path]
    file, edits = source.on_disk, source.file_edits(finding.fix.edits)
    text = edits[0].text
    for before, after in pairwise(edits):
        between = file.text[before.end : after.start]
        if between.count("\n") > 1:
            return []
        text += between + after.text
    span = Span(edits[0].start, edits[-1].end)
    return [{"range": _range(file, span), "text": encodable(text)}]


def _location(source: SourceFile, span: Span, folder: Path) -> dict[str, object]:
    return {"path": portable_path(source.path, folder), "range": _range(*on_disk(source, span))}


def _range(file: SourceFile, span: Span) -> dict[str, object]:
    at = region(file, span, lambda text: len(text.encode("utf-8", "replace")))
    return {
        "start": {"line": at.line, "column": at.column},
        "end": {"line": at.end_line, "column": at.end_column},
    }
