"""The language server: protocol messages to the document scheduler and back."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import PositionCodec

from .. import __version__
from ..engine.rules import load_rules
from ..errors import RematMigrateError
from ..report.pages.rule_page import rule_summary
from ..rule import Rule
from ..text import SourceFile, Span
from .actions import FIX_ALL, ActionContext, code_actions
from .diagnostics import diagnostic
from .document_scheduler import DocumentScheduler
from .documents import Document, document, location, path_of, touches
from .projects import ProjectError, ProjectView

_NAME = "remat-migrate"
# Files in which a project can have findings, whether they are open or not.
_WATCHED = types.FileSystemWatcher("**/*.{py,pyi,ipynb,sh,bash,yaml,yml,toml,mk,env}")
_WATCH = types.Registration(
    "remat-migrate-files",
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
    types.DidChangeWatchedFilesRegistrationOptions([_WATCHED]),
)
# The analysis recurses into nested code, and threads have a small stack on some platforms.
_STACK_BYTES = 64 * 1024 * 1024


class Server(LanguageServer):
    """The server of one editor.

    Attributes:
        scheduler: the open documents.
        codec: converts columns to the units of the editor.
        rules: all rules by code.
        was_shut_down: whether the editor sent `shutdown` before `exit`.
    """

    def __init__(self) -> None:
        # Full texts: pygls would place partial changes with form feeds as line ends.
        super().__init__(_NAME, __version__, types.TextDocumentSyncKind.Full)
        self.scheduler = DocumentScheduler(self.show, self.report)
        self.codec = PositionCodec()
        self.rules: dict[str, Rule] = {}
        self.was_shut_down = False
        self._reported: set[tuple[Path, str]] = set()

    def show(self, document: Document, view: ProjectView) -> None:
        """Publish the findings in a document."""
        if not view.is_current(document.path):
            return
        self.publish(
            document.uri,
            document.version,
            [
                diagnostic(finding, self.rules.get(finding.code), self.locate)
                for finding in view.findings(document.path)
            ],
        )

    def publish(self, uri: str, version: int | None, diagnostics: list[types.Diagnostic]) -> None:
        """Replace the diagnostics of a document."""
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, diagnostics, version)
        )

    def report(self, roots: frozenset[Path], errors: Sequence[ProjectError]) -> None:
        """Show errors, each once until an analysis of its project is without it.

        Args:
            roots: the analysed projects.
            errors: their errors.
        """
        current = {(error.root, error.message) for error in errors}
        self._reported = {one for one in self._reported if one[0] not in roots or one in current}
        for error in errors:
            if (error.root, error.message) in self._reported:
                continue
            self._reported.add((error.root, error.message))
            suffix = "; please report this bug" if error.is_defect else ""
            text = f"{_NAME}: {error.message}{suffix}"
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, text))
            if error.traceback:
                self.window_log_message(
                    types.LogMessageParams(types.MessageType.Error, error.traceback)
                )

    def locate(self, source: SourceFile, span: Span) -> types.Location:
        """Return where the editor shows a span of a file."""
        document = self.scheduler.documents.get(source.path)
        return location(document, source, span, self.codec)

    def update(self, uri: str, *, settled: bool) -> None:
        """Take the newest text of a document."""
        if path_of(uri, self.scheduler.folders) is None:
            return
        text = self.workspace.get_text_document(uri)
        language, folders = text.language_id or "", self.scheduler.folders
        one = document(uri, language, text.version, text.source, folders, is_settled=settled)
        if one is not None:
            self.scheduler.put(one)

    def opened(self, uri: str) -> Document | None:
        """Return the open document that has a URI."""
        documents = self.scheduler.documents.values()
        return next((one for one in documents if uri == one.uri), None)

    async def action_context(self, uri: str) -> tuple[Document, ActionContext] | None:
        """Return an open document and an analysis of its current text."""
        before = self.opened(uri)
        view = await self.scheduler.view(before.path) if before else None
        if before is None or view is None:
            return None
        documents = dict(self.scheduler.documents)
        context = ActionContext(view, self.rules, documents, self.codec)
        return documents[before.path], context


def serve() -> int:
    """Serve one editor on stdin and stdout.

    Return 0, or 1 if it exits without `shutdown`.
    """
    # What a rule prints must not get between the messages.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    threading.stack_size(_STACK_BYTES)
    server = Server()
    _register_lifecycle(server)
    _register_documents(server)
    _register_requests(server)
    server.start_io(sys.stdin.buffer, out)
    server.scheduler.close()
    return 0 if server.was_shut_down else 1


def _register_lifecycle(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(ls: Server, params: types.InitializeParams) -> None:
        ls.codec = ls.workspace.position_codec
        ls.scheduler.folders = _folders(ls)

    @server.feature(types.INITIALIZED)
    def initialized(ls: Server, params: types.InitializedParams) -> None:
        try:
            ls.rules = {rule.code: rule for rule in load_rules()}
        except RematMigrateError as error:
            ls.report(frozenset(), [ProjectError(Path(), str(error))])
        workspace = ls.client_capabilities.workspace
        watched = workspace.did_change_watched_files if workspace else None
        if watched and watched.dynamic_registration:
            ls.client_register_capability(types.RegistrationParams([_WATCH]), lambda result: None)

    @server.feature(types.SHUTDOWN)
    def shutdown(ls: Server, params: None) -> None:
        ls.was_shut_down = True

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def change_folders(ls: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
        ls.scheduler.folders = _folders(ls)
        ls.scheduler.analyse_all()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def change_files(ls: Server, params: types.DidChangeWatchedFilesParams) -> None:
        ls.scheduler.analyse_all()


def _register_documents(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def open_(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
        ls.update(params.text_document.uri, settled=True)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
        ls.update(params.text_document.uri, settled=False)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def save(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
        ls.update(params.text_document.uri, settled=True)
        ls.scheduler.analyse_all()  # a file that is not analysed may hold settings

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
        one = ls.opened(params.text_document.uri)
        if one is not None:
            ls.scheduler.remove(one.path)
            ls.publish(one.uri, None, [])


def _register_requests(server: Server) -> None:
    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL]),
    )
    async def actions(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction] | None:
        found = await ls.action_context(params.text_document.uri)
        if found is None:
            return None
        one, scope = found
        at = types.Location(params.text_document.uri, params.range)
        return await ls.scheduler.run(lambda: code_actions(scope, one, params.context, at))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
        found = await ls.action_context(params.text_document.uri)
        if found is None:
            return None
        one, scope = found
        cursor = types.Location(
            params.text_document.uri, types.Range(params.position, params.position)
        )
        here = [
            finding
            for finding in scope.view.findings(one.path)
            if finding.code in ls.rules
            and touches(scope.locate(finding.source, finding.span), cursor)
        ]
        if not here or one.path in scope.view.outdated:
            return None
        codes = dict.fromkeys(finding.code for finding in here)
        text = "\n\n---\n\n".join(rule_summary(ls.rules[code]) for code in codes)
        return types.Hover(
            types.MarkupContent(types.MarkupKind.Markdown, text),
            scope.locate(here[0].source, here[0].span).range,
        )


def _folders(ls: Server) -> list[Path]:
    """Return the folders of the workspace, or the root of an editor without such folders."""
    uris = [folder.uri for folder in ls.workspace.folders.values()]
    if not uris and ls.workspace.root_uri:
        uris = [ls.workspace.root_uri]
    return [Path(path).resolve() for uri in uris if (path := to_fs_path(uri))]
