"""Findings as diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.workspace import PositionCodec

from ..rule import Finding, Rule, Severity
from ..suppressions import SuppressionRule
from ..text import SourceFile, Span

_SEVERITIES: Mapping[Severity, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the editor supports.

    Attributes:
        codec: converts columns to its units.
        related: whether diagnostics may refer to other places.
        links: whether the code of a diagnostic may be a link.
        unnecessary: whether it fades out unnecessary code.
        versioned_edits: whether edits may name the version of their document.
        resolve_edits: whether it asks for the edit of an action only when it is chosen.
        shows_documents: whether it opens documents for the server.
    """

    codec: PositionCodec = field(default_factory=PositionCodec)
    related: bool = False
    links: bool = False
    unnecessary: bool = False
    versioned_edits: bool = False
    resolve_edits: bool = False
    shows_documents: bool = False


def abilities(client: types.ClientCapabilities, codec: PositionCodec) -> Abilities:
    """Return what an editor declares that it supports."""

    def declared(capability: str) -> Any:
        return get_capability(client, capability, ())

    diagnostics, action = "text_document.publish_diagnostics", "text_document.code_action"
    resolves_edits = "edit" in declared(f"{action}.resolve_support.properties")
    return Abilities(
        codec,
        related=bool(declared(f"{diagnostics}.related_information")),
        links=bool(declared(f"{diagnostics}.code_description_support")),
        unnecessary=types.DiagnosticTag.Unnecessary
        in declared(f"{diagnostics}.tag_support.value_set"),
        versioned_edits=bool(declared("workspace.workspace_edit.document_changes")),
        resolve_edits=resolves_edits and bool(declared(f"{action}.data_support")),
        shows_documents=bool(declared("window.show_document.support")),
    )


def diagnostic(
    finding: Finding,
    rule: Rule | None,
    locate: Callable[[SourceFile, Span], types.Location],
    can: Abilities,
) -> types.Diagnostic:
    """Return a finding as a diagnostic.

    Args:
        finding: the finding.
        rule: its rule, if it is known.
        locate: returns where the editor shows a span of a file.
        can: what the editor supports.
    """
    related = None
    if can.related and finding.related:
        related = [
            types.DiagnosticRelatedInformation(locate(place.source, place.span), place.message)
            for place in dict.fromkeys(finding.related)
        ]
    is_unnecessary = can.unnecessary and isinstance(rule, SuppressionRule)
    return types.Diagnostic(
        range=locate(finding.source, finding.span).range,
        message=_message(finding),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=(
            types.CodeDescription(finding.url) if can.links and finding.url else None
        ),
        source="remat-migrate",
        tags=[types.DiagnosticTag.Unnecessary] if is_unnecessary else None,
        related_information=related,
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
    fix = finding.fix
    if fix is not None and not fix.is_automatic:
        lines.append(fix.title)
    if finding.reason and (fix is None or finding.reason != fix.title):
        lines.append(finding.reason)
    return "\n".join(lines)
