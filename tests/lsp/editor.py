"""An editor for tests: it starts the real server and talks to it over its protocol.

It applies edits by code units, as the protocol describes, without any code of the server.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, Union
from urllib.parse import unquote, urlsplit

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.protocol import default_converter

T = TypeVar("T")
TIMEOUT = 30.0

ABLE = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
        did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(
            dynamic_registration=True
        ),
        workspace_folders=True,
    ),
    text_document=types.TextDocumentClientCapabilities(
        publish_diagnostics=types.PublishDiagnosticsClientCapabilities(
            related_information=True,
            version_support=True,
            code_description_support=True,
            data_support=True,
            tag_support=types.ClientDiagnosticsTagOptions([types.DiagnosticTag.Unnecessary]),
        ),
        code_action=types.CodeActionClientCapabilities(
            is_preferred_support=True,
        ),
    ),
)


class Editor:
    """A client with a server process, used from the thread of a test.

    Attributes:
        texts: the open documents.
        versions: their versions.
        published: all diagnostics received, in order.
        messages: the messages shown to the user.
        logged: the messages logged.
        watched: the registrations for watched files.
        server: the result of `initialize`.
    """

    def __init__(
        self,
        folders: list[Path],
        can: types.ClientCapabilities = ABLE,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.published: list[types.PublishDiagnosticsParams] = []
        self.messages: list[types.ShowMessageParams] = []
        self.logged: list[str] = []
        self.watched: list[Any] = []
        self.encoding = "utf-16"
        self._news = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.client = self._made()
        self._call(
            lambda: self.client.start_io(
                sys.executable,
                *("-m", "remat_migrate", "server", "--stdio"),
                env={**os.environ, **(environment or {})},
            )
        )
        self.server = self._call(
            lambda: self.client.initialize_async(
                types.InitializeParams(
                    capabilities=can,
                    workspace_folders=[
                        types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders
                    ],
                )
            )
        )
        self.encoding = self.server.capabilities.position_encoding or "utf-16"
        self.notify(lambda: self.client.initialized(types.InitializedParams()))

    def _made(self) -> LanguageClient:
        client = LanguageClient("test-editor", "1", converter_factory=converter)

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(params: types.PublishDiagnosticsParams) -> None:
            self._note(self.published, params)

        @client.feature(types.WINDOW_SHOW_MESSAGE)
        def _(params: types.ShowMessageParams) -> None:
            self._note(self.messages, params)

        @client.feature(types.WINDOW_LOG_MESSAGE)
        def _(params: types.LogMessageParams) -> None:
            self._note(self.logged, params.message)

        @client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def _(params: types.RegistrationParams) -> None:
            self._note(self.watched, params.registrations[0])

        return client

    def _note(self, notes: list[T], note: T) -> None:
        with self._news:
            notes.append(note)
            self._news.notify_all()

    def wait(self, found: Callable[[], T | None]) -> T:
        """Wait until `found` returns something other than None and False, and return it."""

        def is_there() -> bool:
            nonlocal last
            last = found()
            return last is not None and last is not False

        last: T | None = None
        with self._news:
            assert self._news.wait_for(is_there, TIMEOUT), (
                f"nothing came; told: {self.messages}, {self.logged}"
            )
        assert last is not None
        return last

    def _call(self, work: Callable[[], Awaitable[T]]) -> T:
        async def awaited() -> T:
            return await asyncio.wait_for(work(), TIMEOUT)

        return asyncio.run_coroutine_threadsafe(awaited(), self._loop).result()

    def notify(self, work: Callable[[], object]) -> None:
        """Send a notification."""

        async def done() -> None:
            work()

        self._call(done)

    # -- documents

    def open(self, where: Path | str, text: str | None = None, language: str = "python") -> str:
        """Open a file, or a text under a name; return its URI."""
        uri = where.as_uri() if isinstance(where, Path) else where
        if text is None:
            assert isinstance(where, Path)
            text = where.read_bytes().decode()
        self.texts[uri], self.versions[uri] = text, 1
        item = types.TextDocumentItem(uri, language, 1, text)
        params = types.DidOpenTextDocumentParams(item)
        self.notify(lambda: self.client.text_document_did_open(params))
        return uri

    def change(self, uri: str, text: str) -> None:
        """Replace the text of an open document."""
        self.texts[uri] = text
        self.versions[uri] += 1
        params = types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(self.versions[uri], uri),
            [types.TextDocumentContentChangeWholeDocument(text)],
        )
        self.notify(lambda: self.client.text_document_did_change(params))

    def save(self, uri: str) -> None:
        """Write a document to its file."""
        path_of(uri).write_bytes(self.texts[uri].encode())
        params = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri))
        self.notify(lambda: self.client.text_document_did_save(params))

    def close(self, uri: str) -> None:
        """Close a document without saving."""
        del self.texts[uri], self.versions[uri]
        params = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
        self.notify(lambda: self.client.text_document_did_close(params))

    def close_all(self) -> None:
        """Close every document and forget what was received."""
        for uri in list(self.texts):
            self.close(uri)
        self.hover("file:///nowhere.py", 0, 0)  # its answer comes after all earlier messages
        with self._news:
            for notes in (self.published, self.messages, self.logged):
                notes.clear()

    def files_changed(self, *paths: Path) -> None:
        """Notify the server that files changed on disk."""
        changed = types.FileChangeType.Changed
        params = types.DidChangeWatchedFilesParams(
            [types.FileEvent(path.as_uri(), changed) for path in paths]
        )
        self.notify(lambda: self.client.workspace_did_change_watched_files(params))

    def diagnostics(self, uri: str) -> list[types.Diagnostic]:
        """Return the diagnostics of the current text of a document."""
        version = self.versions[uri]
        return self.wait(
            lambda: next(
                (
                    list(params.diagnostics)
                    for params in reversed(self.published)
                    if params.uri == uri and params.version == version
                ),
                None,
            )
        )

    def codes(self, uri: str) -> list[Any]:
        """Return the codes of the diagnostics of the current text of a document."""
        return [diagnostic.code for diagnostic in self.diagnostics(uri)]

    # -- questions

    def actions(
        self, uri: str, place: types.Range | None = None, *only: str
    ) -> list[types.CodeAction]:
        """Return the actions at a place, by default in the whole document."""
        lines = len(re.split("\r\n|\n|\r", self.texts[uri]))
        everywhere = types.Range(types.Position(0, 0), types.Position(lines, 0))
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(uri),
            place or everywhere,
            types.CodeActionContext([], only or None),  # type: ignore[arg-type]
        )
        found = self._call(lambda: self.client.text_document_code_action_async(params))
        return [one for one in found or () if isinstance(one, types.CodeAction)]

    def action(self, uri: str, title: str, *only: str) -> types.CodeAction:
        """Return the only action whose title contains `title`, with its edit."""
        [found] = [one for one in self.actions(uri, None, *only) if title in one.title]
        return found

    def hover(self, uri: str, line: int, character: int) -> types.Hover | None:
        """Return the hover at a place."""
        params = types.HoverParams(
            types.TextDocumentIdentifier(uri), types.Position(line, character)
        )
        return self._call(lambda: self.client.text_document_hover_async(params))

    def apply(self, edit: types.WorkspaceEdit | None) -> None:
        """Apply an edit to open documents and to closed files."""
        assert edit is not None
        changes: dict[str, Any] = dict(edit.changes or {})
        for one in edit.document_changes or ():
            assert isinstance(one, types.TextDocumentEdit)
            uri = one.text_document.uri
            assert one.text_document.version == self.versions.get(uri)
            changes[uri] = one.edits
        for uri, edits in changes.items():
            if uri in self.texts:
                self.change(uri, edited(self.texts[uri], edits, self.encoding))
            else:
                path = path_of(uri)
                text = path.read_bytes().decode()
                path.write_bytes(edited(text, edits, self.encoding).encode())

    # -- the end

    def quit(self, *, politely: bool = True) -> int:
        """Exit and return the server's exit code."""
        if politely:
            self._call(lambda: self.client.shutdown_async(None))
        process = self.client._server
        assert process is not None
        self.notify(lambda: self.client.exit(None))
        code = self._call(process.wait)
        self._call(self.client.stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT)
        self._loop.close()
        return code


def converter() -> Any:
    """Return pygls' converter, fixed to tell an action with a command from a command."""
    made = default_converter()

    def hook(found: Any, _: type) -> types.Command | types.CodeAction:
        is_command = isinstance(found.get("command"), str)
        return made.structure(found, types.Command if is_command else types.CodeAction)

    made.register_structure_hook(Union[types.Command, types.CodeAction], hook)  # noqa: UP007
    return made


def path_of(uri: str) -> Path:
    """Return the path of a `file:` URI."""
    return Path(unquote(urlsplit(uri).path))


def edited(text: str, edits: list[types.TextEdit], encoding: str) -> str:
    """Apply edits whose positions count code units of an encoding."""
    lines = re.split("(?<=\n)|(?<=\r)(?!\n)", text)
    codec, width = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}[
        str(getattr(encoding, "value", encoding))
    ]

    def offset(place: types.Position) -> int:
        before = "".join(lines[: place.line])
        line = lines[place.line] if place.line < len(lines) else ""
        return len(before + line.encode(codec)[: place.character * width].decode(codec))

    placed = sorted(
        ((offset(e.range.start), offset(e.range.end), e.new_text) for e in edits), reverse=True
    )
    for (start, _, _), (_, end, _) in pairwise(placed):
        assert end <= start, "edits overlap"
    for start, end, new in placed:
        text = text[:start] + new + text[end:]
    return text
