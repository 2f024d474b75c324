"""Findings as diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lsprotocol import types

from ..engine.rules import UNUSED
from ..report.content import remark
from ..rule import Finding, Rule, Severity
from ..text import SourceFile, Span

_SEVERITIES: Mapping[Severity, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}


def diagnostic(
    finding: Finding,
    rule: Rule | None,
    locate: Callable[[SourceFile, Span], types.Location],
) -> types.Diagnostic:
    """Return a finding as a diagnostic.

    Args:
        finding: the finding.
        rule: its rule, if it is known.
        locate: returns where the editor shows a span of a file.
    """
    related = [
        types.DiagnosticRelatedInformation(locate(place.source, place.span), place.message)
        for place in dict.fromkeys(finding.related)
    ]
    is_unnecessary = finding.code == UNUSED
    return types.Diagnostic(
        range=locate(finding.source, finding.span).range,
        message=_message(finding),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=types.CodeDescription(finding.url) if finding.url else None,
        source="remat-migrate",
        tags=[types.DiagnosticTag.Unnecessary] if is_unnecessary else None,
        related_information=related or None,
        data={
            "code": finding.code,
            "name": finding.name,
            "confidence": finding.confidence,
            "fix": finding.fix and {"title": finding.fix.title, "safety": str(finding.fix.safety)},
        },
    )


def _message(finding: Finding) -> str:
    """Return what is wrong and, unless an action fixes it, what to write instead."""
    lines = [finding.message]
    if finding.fix is not None and not finding.fix.is_automatic:
        lines.append(finding.fix.title)
    return "\n".join(filter(None, (*lines, remark(finding))))
