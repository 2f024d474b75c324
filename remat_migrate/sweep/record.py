"""What a sweep keeps of a source: the same whichever worker checked it, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


def folder_of(source: Source) -> str:
    """Return the folder of a source's results, relative to that of the sweep."""
    return f"repositories/{source.name}"


@dataclass(frozen=True, slots=True)
class Brief:
    """What a worker sends back of a source, whose record is in the store.

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


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of checking a source.

    Attributes:
        source: the source.
        status: how it ended.
        reason: why, if it was not checked.
        commit: the commit that was checked; empty for a folder.
        report: the JSON report, if there is one.
        exit_code: that of the run.
        patch: the patch with the fixes.
        sarif: the SARIF log.
        notes: what could not be done, such as to verify.
    """

    source: Source
    status: Status
    reason: str = ""
    commit: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int = 0
    patch: bytes = b""
    sarif: bytes = b""
    notes: Sequence[str] = ()

    def record(self) -> dict[str, Any]:
        """Return what the tables and the page are made of."""
        findings = [_finding(row) for row in self.report.get("findings", ())]
        severities = Counter(row["severity"] for row in findings)
        return {
            "schema_version": SCHEMA_VERSION,
            "source": self.source.address,
            "revision": self.source.revision,
            "name": self.source.name,
            "commit": self.commit,
            "status": str(self.status),
            "reason": self.reason,
            "exit_code": self.exit_code,
            "files": self.report.get("summary", {}).get("files", 0),
            "severities": {severity: severities[severity] for severity in SEVERITIES},
            "findings": findings,
            "sites": list(self.report.get("sites", ())),
            "verdicts": list(self.report.get("verdicts", ())),
            "notes": list(self.notes),
            "patched_files": self.patch.count(b"\n+++ ") + self.patch.startswith(b"+++ "),
        }


def _finding(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a finding without the edits of its fix, which are in the patch."""
    fix = row["fix"] and {key: value for key, value in row["fix"].items() if key != _EDITS}
    return {**row, "fix": fix}
