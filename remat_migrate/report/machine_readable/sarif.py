"""The `sarif` format: SARIF 2.1.0 for GitHub code scanning and editors.

Columns count UTF-16 units, which most readers assume whatever the document declares. Paths are
relative to the repository, the only ones that GitHub resolves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ... import HOMEPAGE, __version__
from ...discovery.roots import repository
from ...engine.analyse import Hidden
from ...engine.fingerprint import fingerprints
from ...rule import Confidence, Finding, Fix, Rule
from ...text import Edit, SourceFile, Span
from ..content import Report, worst_first
from ..pages.rule_page import rule_page, section
from ..terminal.display import Screen, printable
from ..terminal.explain import explain
from .shared import cell, encodable, file_uri, fix_lines, on_disk, region

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
# GitHub rejects runs with more results.
_MAX_RESULTS = 25_000
# Longer code is not repeated in the report.
_MAX_SNIPPET = 2_000
_ROOT = "%SRCROOT%"
_RANKS: Mapping[Confidence, float] = {"high": 90.0, "medium": 60.0, "low": 30.0}
_JUSTIFICATIONS = {
    "settings": "per-file-ignores in the settings",
    "baseline": "known: in the baseline",
}
# Plain text that looks like a Markdown link, which viewers would turn into one.
_LINK = re.compile(r"\](?=\()")

_Object = dict[str, object]


def render(report: Report, screen: Screen) -> str:
    """Return the document; beyond GitHub's limit it holds the worst results and a notification."""
    # json.dumps writes ASCII: control characters become escapes.
    return json.dumps(_Run(report, repository(report.root)).document(), indent=1) + "\n"


@dataclass(frozen=True)
class _Run:
    """The one run of the document."""

    report: Report
    folder: Path

    @cached_property
    def all(self) -> tuple[tuple[Finding, Hidden | None], ...]:
        """All findings, the worst first, then the suppressed ones."""
        hidden = {one.finding: one for one in self.report.hidden}
        return (
            *((finding, None) for finding in worst_first(self.report.findings)),
            *((finding, hidden[finding]) for finding in worst_first(hidden)),
        )

    @cached_property
    def fingerprints(self) -> Mapping[Finding, str]:
        return fingerprints([finding for finding, _ in self.all], self.report.root)

    def document(self) -> _Object:
        """Return the log."""
        return {
            "$schema": SCHEMA,
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {
                        "driver": {
                            "name": "remat-migrate",
                            "informationUri": HOMEPAGE,
                            "version": __version__,
                            "rules": list(map(_rule, self.report.rules)),
                        }
                    },
                    "invocations": [self._invocation()],
                    "originalUriBaseIds": {_ROOT: {"uri": file_uri(self.folder).rstrip("/") + "/"}},
                    "columnKind": "utf16CodeUnits",
                    "results": [self._result(*one) for one in self.all[:_MAX_RESULTS]],
                }
            ],
        }

    def _invocation(self) -> _Object:
        notifications = []
        for fault in self.report.faults:
            text = printable(f"rule {fault.code} failed: {fault.error}")
            where = {"artifactLocation": self._artifact(fault.path)}
            notifications.append(
                {**_notification("error", text), "locations": [{"physicalLocation": where}]}
            )
        if (omitted := len(self.all) - _MAX_RESULTS) > 0:
            text = (
                f"the {omitted} least severe of {len(self.all)} results are omitted:"
                " the rest reaches GitHub's limit"
            )
            notifications.append(_notification("warning", text))
        return {
            "executionSuccessful": not self.report.faults,
            **({"toolExecutionNotifications": notifications} if notifications else {}),
        }

    def _result(self, finding: Finding, hidden: Hidden | None) -> _Object:
        related = [
            {
                "id": number,
                **self._location(one.source, one.span),
                "message": {"text": _text(one.message)},
            }
            for number, one in enumerate(dict.fromkeys(finding.related), 1)
        ]
        fix = finding.fix
        edited = fix is not None and all(path in self.report.sources for path in fix.paths)
        return {
            "ruleId": finding.code,
            "level": finding.severity,
            "message": {"text": "\n".join(map(_text, (finding.message, *fix_lines(finding))))},
            "locations": [self._location(finding.source, finding.span, with_code=True)],
            **({"relatedLocations": related} if related else {}),
            "partialFingerprints": {"remat-migrate/v1": self.fingerprints[finding]},
            **({"fixes": [self._fix(fix)]} if fix and fix.changes and edited else {}),
            **self._baseline_state(hidden),
            **_suppressions(hidden),
            "rank": _RANKS[finding.confidence],
            "properties": {
                "confidence": finding.confidence,
                **({"safety": str(fix.safety)} if fix else {}),
                **cell(finding.source, finding.span.start),
                **({"url": finding.url} if finding.url else {}),
            },
        }

    def _baseline_state(self, hidden: Hidden | None) -> _Object:
        """Return whether a finding is new; unknown for one that a comment suppresses."""
        if self.report.baseline is None or (hidden and hidden.by != "baseline"):
            return {}
        return {"baselineState": "unchanged" if hidden else "new"}

    def _fix(self, fix: Fix) -> _Object:
        by_path: dict[Path, list[Edit]] = {}
        for edit in sorted(set(fix.edits)):
            by_path.setdefault(edit.path, []).append(edit)
        return {
            "description": {"text": _text(fix.title)},
            "artifactChanges": [
                {
                    "artifactLocation": self._artifact(path),
                    "replacements": _replacements(self.report.sources[path], edits),
                }
                for path, edits in by_path.items()
            ],
            "properties": {"safety": str(fix.safety)},
        }

    def _location(self, source: SourceFile, span: Span, *, with_code: bool = False) -> _Object:
        file, where = on_disk(source, span)
        shown = _region(file, where)
        code = file.text[where.start : where.end]
        if with_code and 0 < len(code) <= _MAX_SNIPPET:
            shown["snippet"] = {"text": encodable(code)}
        return {
            "physicalLocation": {"artifactLocation": self._artifact(source.path), "region": shown}
        }

    def _artifact(self, path: Path) -> _Object:
        if path.is_relative_to(self.folder):
            return {"uri": file_uri(path.relative_to(self.folder)), "uriBaseId": _ROOT}
        return {"uri": file_uri(path)}


def _rule(rule: Rule) -> _Object:
    """Return a rule as a reporting descriptor, which GitHub shows beside an alert."""
    title = rule.name.replace("-", " ").capitalize().replace("cse", "CSE")
    what, why = (section(rule, title) for title in ("What it does", "Why is this bad?"))
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{what} {why}".replace("`", "")},
        "help": {"text": "\n".join(explain(rule, Screen())), "markdown": rule_page(rule)},
        **({"helpUri": rule.url} if rule.url else {}),
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"tags": ["jax", "rematerialization", *["migration"] * bool(rule.since)]},
    }


def _region(file: SourceFile, where: Span) -> _Object:
    at = region(file, where, lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2)
    return {
        "startLine": at.line,
        "startColumn": at.column,
        "endLine": at.end_line,
        "endColumn": at.end_column,
    }


def _replacements(source: SourceFile, edits: Sequence[Edit]) -> list[_Object]:
    return [
        {
            "deletedRegion": _region(source.on_disk, Span(one.start, one.end)),
            **({"insertedContent": {"text": encodable(one.text)}} if one.text else {}),
        }
        for one in source.file_edits(edits)
    ]


def _suppressions(hidden: Hidden | None) -> _Object:
    if hidden is None:
        return {}
    if hidden.by == "comment":
        return {"suppressions": [{"kind": "inSource"}]}
    return {"suppressions": [{"kind": "external", "justification": _JUSTIFICATIONS[hidden.by]}]}


def _notification(level: str, text: str) -> _Object:
    return {"level": level, "message": {"text": text}}


def _text(text: str) -> str:
    """Return a line as a plain-text message without links."""
    return _LINK.sub("] ", printable(text))
