"""Code actions: a fix, a suppression, an explanation, and all safe fixes at once."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lsprotocol import types
from pygls.workspace import PositionCodec

from ..engine.check import fix_in_memory
from ..engine.integrity import check_integrity
from ..engine.rules import UNREADABLE, UNUSED
from ..engine.suppress import suppress_all
from ..errors import ApplyError, SourceError
from ..rule import Finding, Rule, Safety
from ..text import Edit, SourceFile, Span, apply_edits
from ..text.escapes import lines_of
from .diagnostics import diagnostic
from .documents import Document, location, range_of, touches
from .projects import ProjectView

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.remat-migrate"
_QUICK_FIX = types.CodeActionKind.QuickFix

Edits = Mapping[Path, Sequence[Edit]]


@dataclass(frozen=True, slots=True)
class ActionContext:
    """What code actions are computed from.

    Attributes:
        view: the last analysis of the project.
        rules: all rules by code.
        documents: all open documents, of this project and others.
        codec: converts columns to the units of the editor.
    """

    view: ProjectView
    rules: Mapping[str, Rule]
    documents: Mapping[Path, Document]
    codec: PositionCodec

    def locate(self, source: SourceFile, span: Span) -> types.Location:
        """Return where the editor shows a span of a file."""
        return location(self.documents.get(source.path), source, span, self.codec)


def code_actions(
    scope: ActionContext, document: Document, context: types.CodeActionContext, at: types.Location
) -> list[types.CodeAction]:
    """Return the actions at a place in a document, of the kinds that the editor asks for."""
    actions: list[types.CodeAction] = []
    if document.path in scope.view.outdated:
        return actions
    for finding in scope.view.findings(document.path):
        if touches(scope.locate(finding.source, finding.span), at):
            if _is_asked_for(_QUICK_FIX, context.only):
                actions += _quick_fixes(scope, finding)
    # Too slow for the menu, which the editor asks for whenever the cursor moves.
    if context.only and _is_asked_for(FIX_ALL, context.only):
        if edit := _fix_all(scope, document):
            title = "remat-migrate: apply all safe fixes"
            actions.append(types.CodeAction(title, kind=FIX_ALL, edit=edit))
    return actions


def _fix_all(scope: ActionContext, document: Document) -> types.WorkspaceEdit | None:
    """Return the edit that makes all safe fixes in a document; None if there are none.

    Fixes are repeated until none is left. A fix that also edits other files is made as a whole.
    """
    view = scope.view
    if not any(finding.has_fix(Safety.SAFE) for finding in view.findings(document.path)):
        return None
    run = replace(view.run, shown=frozenset({document.path}))
    outcome = fix_in_memory(run, unsafe=False, previous=view.analysis)
    edits = {change.path: _line_edits(change.before, change.after) for change in outcome.changes}
    sources = {change.path: change.before for change in outcome.changes}
    return _workspace_edit(scope, edits, sources)


def _quick_fixes(scope: ActionContext, finding: Finding) -> Iterator[types.CodeAction]:
    rule = scope.rules.get(finding.code)
    shown = [diagnostic(finding, rule, scope.locate)]
    if edit := _fix_edit(scope, finding):
        assert finding.fix is not None
        is_safe = finding.fix.safety is Safety.SAFE
        note = "" if is_safe else " (unsafe: memory, time or names may change)"
        yield types.CodeAction(
            f"{finding.code}: {finding.fix.title}{note}",
            kind=_QUICK_FIX,
            diagnostics=shown,
            is_preferred=True if is_safe else None,
            edit=edit,
        )
    if finding.code not in (UNREADABLE, UNUSED):
        if edit := _suppression(scope, finding):
            yield types.CodeAction(
                f"Suppress {finding.code} here (# noqa: {finding.code})",
                kind=_QUICK_FIX,
                diagnostics=shown,
                edit=edit,
            )


def _fix_edit(scope: ActionContext, finding: Finding) -> types.WorkspaceEdit | None:
    """Return the edit of a fix; None if it is manual, edits excluded files, or breaks a file."""
    fix = finding.fix
    if fix is None or not fix.is_automatic or not fix.paths <= scope.view.run.files:
        return None
    edits: dict[Path, list[Edit]] = defaultdict(list)
    for edit in sorted(set(fix.edits)):
        edits[edit.path].append(edit)
    try:
        sources = {path: scope.view.analysis.source(path) for path in edits}
        for path, source in sources.items():
            if check_integrity(source, apply_edits(source.text, edits[path]), edits[path]):
                return None
    except (ApplyError, SourceError):
        return None
    return _workspace_edit(scope, edits, sources)


def _suppression(scope: ActionContext, finding: Finding) -> types.WorkspaceEdit | None:
    document = scope.documents.get(finding.path)
    if document is None or not document.python:
        return None
    edits, _ = suppress_all(finding.source, [finding])
    return _workspace_edit(scope, {finding.path: edits}, {finding.path: finding.source})


def _is_asked_for(kind: str, only: Sequence[str] | None) -> bool:
    return only is None or any(kind == one or kind.startswith(one + ".") for one in only)


def _workspace_edit(
    scope: ActionContext, edits: Edits, sources: Mapping[Path, SourceFile]
) -> types.WorkspaceEdit | None:
    """Return edits of files as an edit of the workspace; None if there are none.

    There is none either if a document has changed since the analysis.
    """
    by_path = {path: here for path, here in edits.items() if here}
    opened = ((scope.documents.get(path), sources[path].on_disk.text) for path in by_path)
    if not by_path or any(one and one.source.on_disk.text != text for one, text in opened):
        return None
    changes: list[types.TextDocumentEdit] = []
    for path, here in by_path.items():
        document, source = scope.documents.get(path), sources[path]
        uri, version = (document.uri, document.version) if document else (path.as_uri(), None)
        edits_on_disk = [
            types.TextEdit(range_of(source.on_disk, Span(start, end), scope.codec), text)
            for start, end, text in source.file_edits(here)
        ]
        changes.append(
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(uri, version),
                edits_on_disk,
            )
        )
    return types.WorkspaceEdit(document_changes=list(changes))


def _line_edits(before: SourceFile, after: SourceFile) -> tuple[Edit, ...]:
    """Return edits of the lines that differ, so that the editor keeps cursors and folds."""
    old, new = lines_of(before.text), lines_of(after.text)
    starts = [*before.line_starts, len(before.text)]
    matched = difflib.SequenceMatcher(None, old, new)
    return tuple(
        Edit(before.path, starts[first], starts[last], "".join(new[start:end]))
        for tag, first, last, start, end in matched.get_opcodes()
        if tag != "equal"
    )
