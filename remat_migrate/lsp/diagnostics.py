"""Findings as diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from ..rule import Finding, Rule, Severity
from ..suppressions import SuppressionRule
from .positions import Encoding, range_of

SOURCE = "remat-migrate"

_SEVERITIES: Mapping[Severity, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the editor can show and do, and how it counts.

    Attributes:
        encoding: what its columns count.
        related: whether a diagnostic may name other places.
        links: whether a diagnostic's code may be a link.
        tags: those it knows.
        versioned_edits: whether an edit may name the version of the document it is for.
        resolve_edits: whether it asks for an action's edit when that is wanted, not before.
        shows_documents: whether it opens a document that the server names.
    """

    encoding: Encoding
    related: bool = False
    links: bool = False
    tags: frozenset[types.DiagnosticTag] = frozenset()
    versioned_edits: bool = False
    resolve_edits: bool = False
    shows_documents: bool = False


def abilities(client: types.ClientCapabilities, encoding: Encoding) -> Abilities:
    """What an editor says that it can do."""
    document = client.text_document or types.TextDocumentClientCapabilities()
    shown = document.publish_diagnostics or types.PublishDiagnosticsClientCapabilities()
    actions = document.code_action or types.CodeActionClientCapabilities()
    workspace = client.workspace or types.WorkspaceClientCapabilities()
    window = client.window or types.WindowClientCapabilities()
    edits = workspace.workspace_edit
    resolved = actions.resolve_support.properties if actions.resolve_support else ()
    return Abilities(
        encoding,
        related=bool(shown.related_information),
        links=bool(shown.code_description_support),
        tags=frozenset(shown.tag_support.value_set if shown.tag_support else ()),
        versioned_edits=bool(edits and edits.document_changes),
        resolve_edits="edit" in resolved and bool(actions.data_support),
        shows_documents=bool(window.show_document and window.show_document.support),
    )


def diagnostic(
    finding: Finding,
    rule: Rule | None,
    uri: Callable[[Path], str],
    can: Abilities,
) -> types.Diagnostic:
    """A finding as the editor shows it.

    Args:
        finding: the finding.
        rule: its rule, where it is known.
        uri: the name of a file in the editor.
        can: what the editor can show.
    """
    related = None
    if can.related and finding.related:
        related = [
            types.DiagnosticRelatedInformation(
                types.Location(
                    uri(place.source.path), range_of(place.source, place.span, can.encoding)
                ),
                place.message,
            )
            for place in dict.fromkeys(finding.related)
        ]
    idle = isinstance(rule, SuppressionRule) and types.DiagnosticTag.Unnecessary in can.tags
    return types.Diagnostic(
        range=range_of(finding.source, finding.span, can.encoding),
        message=message_of(finding),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=(
            types.CodeDescription(finding.url) if can.links and finding.url else None
        ),
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if idle else None,
        related_information=related,
        data={
            "code": finding.code,
            "name": finding.name,
            "confidence": finding.confidence,
            "fix": finding.fix and {"title": finding.fix.title, "safety": str(finding.fix.safety)},
        },
    )


def message_of(finding: Finding) -> str:
    """What is wrong and, where no fix is offered, why and what to write instead."""
    lines = [finding.message]
    fix = finding.fix
    if fix is not None and not fix.is_automatic:
        lines.append(fix.title)
    if finding.reason and (fix is None or finding.reason != fix.title):
        lines.append(finding.reason)
    return "\n".join(lines)
