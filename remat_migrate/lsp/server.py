"""The language server: what the editor says and asks, by pygls, to the desk and back."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from .. import __version__
from ..engine.rules import load_rules
from ..errors import RematMigrateError
from ..report.pages.rule_page import rule_page, rule_summary
from ..report.terminal.display import Screen
from ..report.terminal.explain import unmarked
from ..rule import Rule
from .actions import EXPLAIN, FIX_ALL, Offer, code_actions, fix_all_edit, uri_at
from .diagnostics import Abilities, abilities, diagnostic
from .document_scheduler import Desk
from .documents import Document, document, path_of, uri_of
from .positions import UTF_16, range_of, touches
from .projects import Trouble, View

_NAME = "remat-migrate"
# Files that the project's findings may come from, whether they are open or not.
_WATCHED = "**/*.{py,pyi,ipynb,md,sh,bash,yaml,yml,toml,mk,env}"
# The analysis calls itself for nested code; threads have a small stack on some systems.
_STACK_BYTES = 64 * 1024 * 1024


class Server(LanguageServer):
    """The server of one editor.

    Attributes:
        desk: the open documents.
        can: what the editor can do.
        was_shut_down: whether the editor said good-bye before it left.
    """

    def __init__(self) -> None:
        # Whole texts: a change of part of one would be placed by pygls, which takes form feeds for
        # line ends.
        super().__init__(_NAME, __version__, types.TextDocumentSyncKind.Full)
        self.desk = Desk(self.show, self.tell)
        self.can = Abilities(UTF_16)
        self.was_shut_down = False
        self.rules: dict[str, Rule] = {}
        self._told: set[tuple[Path, str]] = set()
        self._pages: tempfile.TemporaryDirectory[str] | None = None

    # -- to the editor

    def show(self, document: Document, view: View) -> None:
        """Publish what was found in a document."""
        if not view.is_current(document.path):
            return
        self.publish(
            document.uri,
            document.version,
            [
                diagnostic(finding, self.rules.get(finding.code), self.uri, self.can)
                for finding in view.findings(document.path)
            ],
        )

    def publish(self, uri: str, version: int | None, diagnostics: list[types.Diagnostic]) -> None:
        """Publish the diagnostics of a document in place of those before."""
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, diagnostics, version)
        )

    def tell(self, roots: frozenset[Path], troubles: Sequence[Trouble]) -> None:
        """Tell what went wrong, each once until it is mended; `roots` are what was looked at."""
        mended = {(root, text) for root, text in self._told if root in roots}
        mended -= {(trouble.root, trouble.message) for trouble in troubles}
        self._told -= mended
        for trouble in troubles:
            if (trouble.root, trouble.message) in self._told:
                continue
            self._told.add((trouble.root, trouble.message))
            kind = types.MessageType.Error
            ending = "; please report this defect" if trouble.is_defect else ""
            self.window_show_message(
                types.ShowMessageParams(kind, f"{_NAME}: {trouble.message}{ending}")
            )
            if trouble.detail:
                self.window_log_message(types.LogMessageParams(kind, trouble.detail))

    def uri(self, path: Path) -> str:
        """The name of a file in the editor."""
        return uri_at(self.desk.documents, path)

    def page(self, rule: Rule) -> Path:
        """A file with a rule's documentation, there as long as the server is."""
        if self._pages is None:
            self._pages = tempfile.TemporaryDirectory(prefix="remat-migrate-")
        path = Path(self._pages.name) / f"{rule.code}.md"
        path.write_text(rule_page(rule), encoding="utf-8")
        return path

    def close(self) -> None:
        """Stop looking, and remove what was written."""
        self.desk.close()
        if self._pages is not None:
            self._pages.cleanup()

    # -- from the editor

    def take(
        self, uri: str, version: int | None, text: str, language: str, *, settled: bool
    ) -> None:
        """Take the newest text of a document."""
        one = document(uri, language, version, text, self.desk.folders, is_settled=settled)
        if one is not None:
            self.desk.put(one)

    def opened(self, uri: str) -> Document | None:
        """The open document of a name."""
        return next((one for one in self.desk.documents.values() if one.uri == uri), None)

    async def offer(self, uri: str) -> tuple[Document, Offer] | None:
        """A document as it is now, and what offers in it are made from."""
        before = self.opened(uri)
        view = await self.desk.view(before.path) if before else None
        if before is None or view is None:
            return None
        one = self.desk.documents[before.path]
        return one, Offer(view, self.rules, dict(self.desk.documents), self.can)


def serve() -> int:
    """Serve one editor on standard input and output; the exit code.

    It is 1 if the editor went without saying good-bye.
    """
    # What a rule prints must not go between the messages.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    threading.stack_size(_STACK_BYTES)
    server = make_server()
    server.start_io(sys.stdin.buffer, out)
    server.close()
    return 0 if server.was_shut_down else 1


def make_server() -> Server:
    """A server that is not started yet."""
    server = Server()
    _register_life(server)
    _register_documents(server)
    _register_questions(server)
    return server


def _register_life(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(ls: Server, params: types.InitializeParams) -> None:
        ls.can = abilities(params.capabilities, ls.workspace.position_encoding or UTF_16)
        ls.desk.folders = _folders(ls)

    @server.feature(types.INITIALIZED)
    def initialized(ls: Server, params: types.InitializedParams) -> None:
        try:
            ls.rules = {rule.code: rule for rule in load_rules()}
        except RematMigrateError as error:
            ls.tell(frozenset(), [Trouble(Path(), str(error))])
        workspace = ls.client_capabilities.workspace
        watched = workspace.did_change_watched_files if workspace else None
        if watched and watched.dynamic_registration:
            ls.client_register_capability(
                types.RegistrationParams([_watching()]), lambda result: None
            )

    @server.feature(types.SHUTDOWN)
    def shutdown(ls: Server, params: None) -> None:
        ls.was_shut_down = True

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def change_folders(ls: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
        ls.desk.folders = _folders(ls)
        ls.desk.look()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def change_files(ls: Server, params: types.DidChangeWatchedFilesParams) -> None:
        ls.desk.look()


def _register_documents(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def open_(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        ls.take(item.uri, item.version, item.text, str(item.language_id), settled=True)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
        _retake(ls, params.text_document.uri, settled=False)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def save(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
        _retake(ls, params.text_document.uri, settled=True)
        ls.desk.look()  # files that are of no kind that is looked at may be settings

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
        one = ls.opened(params.text_document.uri)
        if one is not None:
            ls.desk.remove(one.path)
            ls.publish(one.uri, None, [])


def _register_questions(server: Server) -> None:
    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(
            code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL], resolve_provider=True
        ),
    )
    async def actions(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction] | None:
        found = await ls.offer(params.text_document.uri)
        if found is None:
            return None
        one, offer = found
        return await ls.desk.run(lambda: code_actions(offer, one, params.context, params.range))

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(ls: Server, action: types.CodeAction) -> types.CodeAction:
        data: Any = action.data
        found = await ls.offer(data["uri"]) if isinstance(data, dict) and "uri" in data else None
        if found is not None and found[0].version == data.get("version"):
            one, offer = found
            action.edit = await ls.desk.run(lambda: fix_all_edit(offer, one))
        return action

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
        found = await ls.offer(params.text_document.uri)
        if found is None:
            return None
        one, offer = found
        encoding = ls.can.encoding
        cursor = types.Range(params.position, params.position)
        here = [
            finding
            for finding in offer.view.findings(one.path)
            if finding.code in ls.rules
            and touches(range_of(finding.source, finding.span, encoding), cursor)
        ]
        if not here or one.path in offer.view.behind:
            return None
        texts = [rule_summary(ls.rules[code]) for code in {f.code: 0 for f in here}]
        return types.Hover(
            types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(texts)),
            range_of(here[0].source, here[0].span, encoding),
        )

    @server.command(EXPLAIN)
    def explain(ls: Server, code: str) -> str | None:
        rule = ls.rules.get(code.upper())
        if rule is None:
            ls.window_show_message(
                types.ShowMessageParams(
                    types.MessageType.Warning, f"{_NAME}: no rule has the code {code}"
                )
            )
            return None
        if ls.can.shows_documents:
            page = uri_of(ls.page(rule))
            ls.window_show_document(
                types.ShowDocumentParams(page, take_focus=True), lambda result: None
            )
        else:
            ls.window_show_message(
                types.ShowMessageParams(
                    types.MessageType.Info, "\n".join(unmarked(rule_summary(rule), Screen()))
                )
            )
        return rule_page(rule)


def _retake(ls: Server, uri: str, *, settled: bool) -> None:
    """Take what a document that is open has become."""
    if path_of(uri, ls.desk.folders) is None:
        return
    text = ls.workspace.get_text_document(uri)
    ls.take(uri, text.version, text.source, text.language_id or "", settled=settled)


def _folders(ls: Server) -> list[Path]:
    """The folders of the workspace, or the one root of an editor that knows no others."""
    uris = [folder.uri for folder in ls.workspace.folders.values()]
    if not uris and ls.workspace.root_uri:
        uris = [ls.workspace.root_uri]
    return [Path(path).resolve() for uri in uris if (path := to_fs_path(uri))]


def _watching() -> types.Registration:
    return types.Registration(
        "remat-migrate-files",
        types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
        types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(_WATCHED)]),
    )
