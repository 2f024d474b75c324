"""A headless Chromium, driven over a pipe in the DevTools protocol."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Nothing is fetched, nothing is written outside the folder for the profile.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_PATIENCE = 60.0


def program() -> str | None:
    """The path of a Chromium, from REMAT_MIGRATE_CHROMIUM or PATH."""
    given = os.environ.get("REMAT_MIGRATE_CHROMIUM")
    return given or next(filter(None, map(shutil.which, NAMES)), None)


def artefacts() -> Path:
    """The folder that pictures are kept in."""
    root = Path(__file__).parents[1]
    folder = Path(os.environ.get("REMAT_MIGRATE_ARTEFACTS", root / "build" / "screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Tab:
    """One page."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session
        self._size = 800, 600
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: object) -> dict[str, Any]:
        """The reply to a command of the protocol."""
        return self._browser.ask(method, self._session, **parameters)

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a file and wait until it is there."""
        # A change of the fragment alone would load nothing.
        self.visit("about:blank")
        self.visit(page.resolve().as_uri() + fragment)

    def visit(self, address: str) -> None:
        """Load a page and wait until it is there."""
        self._browser.events.clear()
        self.ask("Page.navigate", url=address)
        self._browser.wait("Page.loadEventFired", self._session)

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript; what it throws is an error here."""
        reply = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        """Press a key: `Tab`, `Enter`, or a letter with the text that it gives."""
        codes = {"Tab": 9, "Enter": 13, "Space": 32, "End": 35}
        event = {"key": " " if key == "Space" else key, "code": key, "text": text}
        event |= {"windowsVirtualKeyCode": codes.get(key, 0)}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **event)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **event | {"text": ""})

    def write(self, text: str) -> None:
        """Write into what has the focus."""
        self.ask("Input.insertText", text=text)

    def emulate(self, *, dark: bool = False, media: str = "") -> None:
        """Prefer dark or light; show as on paper with `media="print"`."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def resize(self, width: int, height: int) -> None:
        """The size of the window, in pixels."""
        self._size = width, height
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def picture(self, name: str, *, whole: bool = False) -> Path:
        """Keep a picture of what is in the window, or of the whole page, in the artefacts."""
        width, height = self._size
        if whole:
            # What is out of sight is not drawn: the window is made as high as the page.
            self.resize(width, self.run("document.documentElement.scrollHeight"))
            self.resize(width, self.run("document.documentElement.scrollHeight"))
        reply = self.ask("Page.captureScreenshot", format="png")
        self.resize(width, height)
        path = artefacts() / name
        path.write_bytes(base64.b64decode(reply["data"]))
        return path

    def pdf(self, name: str) -> Path:
        """Keep the page as it is printed."""
        reply = self.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        path = artefacts() / name
        path.write_bytes(base64.b64decode(reply["data"]))
        return path

    def complaints(self) -> list[str]:
        """What stands in the console: errors, warnings, and what a policy refused."""
        self.run("new Promise((done) => setTimeout(done, 50))")
        found = []
        for event in self._browser.events:
            if event["method"] == "Log.entryAdded":
                found.append(event["params"]["entry"]["text"])
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(event["params"]["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled":
                found.append(json.dumps(event["params"]["args"]))
        return found

    def requests(self) -> list[str]:
        """The addresses that were asked for since the page was opened."""
        return [
            event["params"]["request"]["url"]
            for event in self._browser.events
            if event["method"] == "Network.requestWillBeSent"
        ]


class Chromium:
    """A running browser; `events` are those that have come since they were last cleared."""

    def __init__(self, path: str, profile: Path) -> None:
        self.events: list[dict[str, Any]] = []
        self._numbers = itertools.count(1)
        self._rest = b""
        read_end, self._to = os.pipe()
        self._from, write_end = os.pipe()
        # Descriptors 3 and 4 are where the browser reads and writes.
        redirected = f'exec "$@" 3<&{read_end} 4>&{write_end}'
        command = [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", redirected, "bash", *command],
            pass_fds=(read_end, write_end),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_end)
        os.close(write_end)

    def tab(self) -> Tab:
        """A new page."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        return Tab(self, attached["sessionId"])

    def ask(self, method: str, session: str = "", **parameters: object) -> dict[str, Any]:
        """The reply to a command.

        Raises:
            RuntimeError: the browser refuses it.
        """
        number = next(self._numbers)
        message: dict[str, object] = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._next()
            if reply.get("id") == number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return dict(reply["result"])
            if "method" in reply:
                self.events.append(reply)

    def wait(self, method: str, session: str) -> None:
        """Wait for an event, unless it has come already."""
        begun = time.monotonic()
        while not any(
            event["method"] == method and event.get("sessionId") == session for event in self.events
        ):
            assert time.monotonic() - begun < _PATIENCE, f"{method} does not come"
            reply = self._next()
            if "method" in reply:
                self.events.append(reply)

    def close(self) -> None:
        """End the browser."""
        try:
            self.ask("Browser.close")
        except (OSError, EOFError):
            self._process.kill()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._from, 1 << 16)
            if not piece:
                raise EOFError("the browser has ended")
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))


@contextmanager
def chromium() -> Iterator[Chromium]:
    """A browser with a profile of its own; the test is skipped where there is none."""
    path = program()
    if path is None:
        pytest.skip(
            "no Chromium on PATH: install it (Debian: apt-get install chromium), or name one in"
            " REMAT_MIGRATE_CHROMIUM"
        )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Chromium(path, Path(profile))
        try:
            yield browser
        finally:
            browser.close()
