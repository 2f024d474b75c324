"""What an editor offers: fixes, a suppression, an explanation; all safe fixes at once."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from lsprotocol import types

from ..codemod.comments import comment_edit
from ..engine.check import fix_in_memory
from ..engine.integrity import check_integrity
from ..engine.rules import UNREADABLE
from ..errors import ApplyError, SourceError
from ..rule import Finding, Rule, Safety
from ..suppressions import SuppressionRule, suppression
from ..text import Edit, SourceFile, Span, apply_edits
from .diagnostics import Abilities, diagnostic
from .documents import Document, uri_of
from .positions import range_of, touches
from .projects import View

EXPLAIN = "remat-migrate.explain"
FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.remat-migrate"
_QUICK_FIX = types.CodeActionKind.QuickFix

Edits = Mapping[Path, Sequence[Edit]]


@dataclass(frozen=True, slots=True)
class Offer:
    """What an offer of actions is made from.

    Attributes:
        view: the last look at the project.
        rules: all rules, by code.
        documents: what is open in the editor, in this project or another.
        can: what the editor can do.
    """

    view: View
    rules: Mapping[str, Rule]
    documents: Mapping[Path, Document]
    can: Abilities

    def uri(self, path: Path) -> str:
        """The name of a file in the editor."""
        return uri_at(self.documents, path)


def uri_at(documents: Mapping[Path, Document], path: Path) -> str:
    """The name of a file in the editor, as the editor writes it where it is open."""
    return documents[path].uri if path in documents else uri_of(path)


def code_actions(
    offer: Offer, document: Document, context: types.CodeActionContext, place: types.Range
) -> list[types.CodeAction]:
    """What can be done in a document at a place, of the kinds that are asked for."""
    actions: list[types.CodeAction] = []
    if document.path in offer.view.behind:
        return actions
    if _is_asked_for(_QUICK_FIX, context.only):
        for finding in offer.view.findings(document.path):
            if touches(range_of(finding.source, finding.span, offer.can.encoding), place):
                actions += _about(offer, finding)
    if _is_asked_for(FIX_ALL, context.only) and _is_fixable(offer, document):
        actions += _fix_all(offer, document, context)
    return actions


def fix_all_edit(offer: Offer, document: Document) -> types.WorkspaceEdit | None:
    """All safe fixes in a document, made until none is left; None if they change nothing.

    Fixes of what they leave are among them. One that edits other files, too, is made whole.
    """
    view = offer.view
    run = view.run.showing(frozenset({document.path}))
    outcome = fix_in_memory(run, unsafe=False, previous=view.analysis)
    edits = {change.path: _line_edits(change.before, change.after) for change in outcome.changes}
    sources = {change.path: change.before for change in outcome.changes}
    return _workspace_edit(offer, edits, sources)


def _about(offer: Offer, finding: Finding) -> Iterator[types.CodeAction]:
    rule = offer.rules.get(finding.code)
    shown = [diagnostic(finding, rule, offer.uri, offer.can)]
    if edit := _fix_edit(offer, finding):
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
    if finding.code != UNREADABLE and not isinstance(rule, SuppressionRule):
        if edit := _suppression(offer, finding):
            yield types.CodeAction(
                f"Suppress {finding.code} here (# noqa: {finding.code})",
                kind=_QUICK_FIX,
                diagnostics=shown,
                edit=edit,
            )
    if rule is not None:
        title = f"Explain {finding.code} ({finding.name})"
        command = types.Command(title, EXPLAIN, arguments=[finding.code])
        yield types.CodeAction(title, kind=_QUICK_FIX, diagnostics=shown, command=command)


def _fix_edit(offer: Offer, finding: Finding) -> types.WorkspaceEdit | None:
    """The edit of a fix; None if it has none, or would break a file."""
    fix = finding.fix
    if fix is None or not fix.is_automatic:
        return None
    edits: dict[Path, list[Edit]] = defaultdict(list)
    for edit in sorted(set(fix.edits)):
        edits[edit.path].append(edit)
    try:
        sources = {path: offer.view.analysis.source(path) for path in edits}
        for path, source in sources.items():
            if check_integrity(source, apply_edits(source.text, edits[path]), edits[path]):
                return None
    except (ApplyError, SourceError):
        return None
    return _workspace_edit(offer, edits, sources)


def _suppression(offer: Offer, finding: Finding) -> types.WorkspaceEdit | None:
    document = offer.documents.get(finding.path)
    if document is None or not document.python:
        return None
    line, _ = finding.source.position(finding.span.start)
    comment = suppression(finding.source, line, finding.code)
    if comment is None:
        return None
    edit = comment_edit(comment)
    return _workspace_edit(offer, {edit.path: [edit]}, {edit.path: finding.source})


def _is_fixable(offer: Offer, document: Document) -> bool:
    return any(
        finding.fix is not None and finding.fix.changes and finding.fix.safety is Safety.SAFE
        for finding in offer.view.findings(document.path)
    )


def _fix_all(
    offer: Offer, document: Document, context: types.CodeActionContext
) -> Iterator[types.CodeAction]:
    """The action that makes all safe fixes; its edit takes several looks at the project."""
    action = types.CodeAction(
        "remat-migrate: make all safe fixes",
        kind=FIX_ALL,
        data={"uri": document.uri, "version": document.version},
    )
    if not offer.can.resolve_edits:
        # Menus are asked for at every move of the cursor: then it is too dear.
        if not context.only:
            return
        action.edit = fix_all_edit(offer, document)
        if action.edit is None:
            return
    yield action


def _is_asked_for(
    kind: str | types.CodeActionKind, only: Sequence[str | types.CodeActionKind] | None
) -> bool:
    if only is None:
        return True
    name = _text(kind)
    return any(name == asked or name.startswith(f"{asked}.") for asked in map(_text, only))


def _text(kind: str | types.CodeActionKind) -> str:
    return kind.value if isinstance(kind, types.CodeActionKind) else kind


def _workspace_edit(
    offer: Offer, edits: Edits, sources: Mapping[Path, SourceFile]
) -> types.WorkspaceEdit | None:
    """Edits of files as the editor takes them; None if there are none, or not of the texts it has.

    A file of which another text was looked at, as it cannot be parsed at the moment, cannot be
    edited. Of a notebook the editor has the file, not the view.
    """
    edits = {path: _of_file(sources[path], here) for path, here in edits.items()}
    sources = {path: source.on_disk for path, source in sources.items()}
    by_path = {path: tuple(here) for path, here in edits.items() if here}
    if not by_path or not all(_is_as_shown(offer, path, sources[path]) for path in by_path):
        return None
    changes = {
        path: [_text_edit(offer, sources[path], edit) for edit in here]
        for path, here in by_path.items()
    }
    if not offer.can.versioned_edits:
        return types.WorkspaceEdit({offer.uri(path): here for path, here in changes.items()})
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(
                    offer.uri(path),
                    offer.documents[path].version if path in offer.documents else None,
                ),
                list(here),
            )
            for path, here in changes.items()
        ]
    )


def _is_as_shown(offer: Offer, path: Path, source: SourceFile) -> bool:
    document = offer.documents.get(path)
    return document is None or document.source.on_disk.text == source.text


def _of_file(source: SourceFile, edits: Sequence[Edit]) -> Sequence[Edit]:
    """Edits of a text as edits of its file, which differs from it in notebooks alone."""
    if source.container is None:
        return edits
    after = source.replaced(apply_edits(source.text, edits))
    return _line_edits(source.on_disk, after.on_disk)


def _text_edit(offer: Offer, source: SourceFile, edit: Edit) -> types.TextEdit:
    return types.TextEdit(
        range_of(source, Span(edit.start, edit.end), offer.can.encoding), edit.text
    )


def _line_edits(before: SourceFile, after: SourceFile) -> tuple[Edit, ...]:
    """The lines that differ, so that cursors and folds elsewhere stay where they are."""
    old, new = (_lines(source) for source in (before, after))
    starts = [*before.line_starts, len(before.text)]
    matched = difflib.SequenceMatcher(None, old, new)
    return tuple(
        Edit(before.path, starts[first], starts[last], "".join(new[start:end]))
        for tag, first, last, start, end in matched.get_opcodes()
        if tag != "equal"
    )


def _lines(source: SourceFile) -> list[str]:
    starts = [*source.line_starts, len(source.text)]
    return [source.text[start:end] for start, end in pairwise(starts)]
