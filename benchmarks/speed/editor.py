"""A small editor: it starts a language server, opens a file, and edits it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from .processes import BenchmarkError, Command, Spent

# A server that has used no CPU time for so many seconds has done its work.
_QUIET = 0.5


class Editor:
    """An editor with one open file.

    Attributes:
        name: name of the server's tool.
    """

    def __init__(self, command: Command, process: subprocess.Popen[bytes], path: Path) -> None:
        self.name = command.name
        self._process = process
        self._uri = path.as_uri()
        self._version = 0
        settings = {"settings": {"lint": {"select": ["NPY201"]}}}
        root = {"uri": command.folder.as_uri(), "name": command.folder.name}
        shown = {"textDocument": {"publishDiagnostics": {"versionSupport": True}}}
        about = {"processId": None, "rootUri": root["uri"], "workspaceFolders": [root]}
        self._send(
            "initialize", {**about, "capabilities": shown, "initializationOptions": settings}, id=1
        )
        self._wait(lambda message: message.get("id") == 1)
        self._send("initialized", {})
        document = {"uri": self._uri, "languageId": "python", "version": 0}
        self._send("textDocument/didOpen", {"textDocument": {**document, "text": path.read_text()}})
        self._wait(self._is_shown)
        self._rest()

    def edit(self, text: str) -> Spent:
        """Replace the text, wait for the diagnostics, and return what the server used."""
        self._version += 1
        before, start = self._cpu(), time.monotonic()
        document = {"uri": self._uri, "version": self._version}
        self._send(
            "textDocument/didChange",
            {"textDocument": document, "contentChanges": [{"text": text}]},
        )
        self._wait(self._is_shown)
        wall = time.monotonic() - start
        self._rest()
        return Spent(
            self._cpu() - before, wall, psutil.Process(self._process.pid).memory_info().rss
        )

    def _is_shown(self, message: Mapping[str, Any]) -> bool:
        if message.get("method") != "textDocument/publishDiagnostics":
            return False
        shown = message["params"]
        return bool(shown["uri"] == self._uri and shown.get("version") == self._version)

    def _cpu(self) -> float:
        # Linux counts nanoseconds for each thread, hundredths of a second for a process.
        threads = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9

    def _rest(self) -> None:
        """Wait until the server has nothing left to do."""
        before = -1.0
        while (now := self._cpu()) != before:
            before = now
            time.sleep(_QUIET)

    def _send(self, method: str, params: Mapping[str, Any], **more: int) -> None:
        self._write({"method": method, "params": params, **more})

    def _write(self, message: Mapping[str, Any]) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
        self._process.stdin.flush()

    def _wait(self, wanted: Any) -> None:
        while not wanted(message := self._read()):
            if "method" in message and "id" in message:
                self._write({"id": message["id"], "result": None})

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            raise BenchmarkError(f"the language server of {self.name} ended")
        return dict(json.loads(self._process.stdout.read(length)))


@contextmanager
def editor(command: Command, path: Path) -> Iterator[Editor]:
    """Start a language server by a command, and open a file."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command.arguments,
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
        cwd=command.folder,
        env=command.environment,
    )
    try:
        yield Editor(command, process, path)
    finally:
        process.kill()
        process.communicate()
