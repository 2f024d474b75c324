"""The `gitlab` format: GitLab's code quality report, which merge requests display.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
from pathlib import Path

from ...discovery.roots import repository
from ...engine.fingerprint import fingerprints
from ...rule import Finding
from ..content import Report, worst_first
from ..terminal.display import Screen, printable
from .shared import on_disk, portable_path, region

_SEVERITIES = ("info", "minor", "major", "critical")
_LEVELS = {"error": 3, "warning": 2, "note": 0}


def render(report: Report, screen: Screen) -> str:
    """Return the document, the worst finding first; paths are relative to the repository."""
    folder = repository(report.root)
    ids = fingerprints(report.findings, report.root)
    entries = [_entry(finding, ids[finding], folder) for finding in worst_first(report.findings)]
    return json.dumps(entries, indent=1) + "\n"


def severity(finding: Finding) -> str:
    """Return GitLab's severity of a finding: a step lower if the confidence is low."""
    level = _LEVELS[finding.severity]
    return _SEVERITIES[max(0, level - (finding.confidence == "low"))]


def _entry(finding: Finding, fingerprint: str, folder: Path) -> dict[str, object]:
    at = region(*on_disk(finding.source, finding.span))
    return {
        "description": printable(f"{finding.code}: {finding.message}"),
        "check_name": finding.code,
        "fingerprint": fingerprint,
        "severity": severity(finding),
        "location": {
            "path": portable_path(finding.path, folder),
            "lines": {"begin": at.line, "end": at.end_line},
            "positions": {
                "begin": {"line": at.line, "column": at.column},
                "end": {"line": at.end_line, "column": at.end_column},
            },
        },
    }
