"""What a sweep keeps of a source: the same whenever it is checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .limited import Status
from .sources import Source

SCHEMA_VERSION = 1
SEVERITIES = ("error", "warning", "note")
_EDITS = "edits"
# Files in the folder of a source.
REPORT, SARIF, PATCH, RECORD, DONE = (
    "report.json",
    "findings.sarif",
    "changes.patch",
    "record.json",
    "done.json",
)

Record = Mapping[str, Any]


def folder_of(source: Source) -> str:
    """Return the folder of a source's results, relative to that of the sweep."""
    return f"repositories/{source.name}"


@dataclass(frozen=True, slots=True)
class Brief:
    """How the check of a source ended, whose record is in the store.

    Attributes:
        source: the source.
        status: how it ended.
        reason: why, if it was not checked.
        kept: whether an earlier sweep checked the same code in the same way.
    """

    source: Source
    status: Status
    reason: str = ""
    kept: bool = False


def record_of(
    brief: Brief,
    *,
    commit: str = "",
    report: Mapping[str, Any] | None = None,
    exit_code: int = 0,
    patch: bytes = b"",
    notes: Sequence[str] = (),
) -> Record:
    """Return what the tables and the page are made of.

    Args:
        brief: how the check ended.
        commit: the commit that was checked; empty for a folder.
        report: the JSON report, if there is one.
        exit_code: that of the run.
        patch: the patch with the fixes.
        notes: what could not be done, such as to verify.
    """
    report = report or {}
    findings = [_finding(row) for row in report.get("findings", ())]
    severities = Counter(row["severity"] for row in findings)
    return {
        "schema_version": SCHEMA_VERSION,
        "source": brief.source.address,
        "revision": brief.source.revision,
        "name": brief.source.name,
        "commit": commit,
        "status": str(brief.status),
        "reason": brief.reason,
        "exit_code": exit_code,
        "files": report.get("summary", {}).get("files", 0),
        "severities": {severity: severities[severity] for severity in SEVERITIES},
        "findings": findings,
        "sites": list(report.get("sites", ())),
        "verdicts": list(report.get("verdicts", ())),
        "notes": list(notes),
        "patched_files": patch.count(b"\n+++ ") + patch.startswith(b"+++ "),
    }


def _finding(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a finding without the edits of its fix, which are in the patch."""
    fix = row["fix"] and {key: value for key, value in row["fix"].items() if key != _EDITS}
    return {**row, "fix": fix}
