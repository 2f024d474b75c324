"""The documentation site: it builds without warnings, and its search works in a real browser."""

from __future__ import annotations

import functools
import http.server
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Tab, chromium

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as for publishing."""
    pytest.importorskip("mkdocs", reason="MkDocs is missing: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""
    handler = functools.partial(Handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with chromium() as browser:
        yield browser.tab()


def test_generated_pages(site: Path) -> None:
    rule = (site / "reference/rules/RMT101-concrete-option/index.html").read_text()
    assert "no argument must be concrete" in rule
    commands = (site / "reference/commands/index.html").read_text()
    assert re.search(r"<code>--unsafe-fixes</code>", commands)
    assert "Sentinel" not in commands
    formats = (site / "reference/formats/index.html").read_text()
    assert "<code>rdjson</code>" in formats
    for page in site.rglob("index.html"):
        assert "<!-- table" not in page.read_text(), page


def test_search(address: str, tab: Tab) -> None:
    tab.resize(1280, 900)
    tab.visit(address)
    tab.run("document.querySelector('[data-md-component=search-query]').focus()")
    tab.write("prevent_cse")
    found = tab.run(
        """new Promise((done) => {
          const look = () => {
            const links = [...document.querySelectorAll('.md-search-result__link')];
            links.length ? done(links.map((link) => link.href)) : setTimeout(look, 50);
          };
          look();
        })"""
    )
    assert any("RMT304-prevent-cse-in-scan" in link for link in found)
    tab.visit(found[0])
    assert "prevent_cse" in tab.run("document.body.innerText")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("page", ["", "tutorial/", "reference/commands/", "explanation/claims/"])
def test_nothing_is_wider_than_the_window(address: str, tab: Tab, page: str, width: int) -> None:
    tab.resize(width, 900)
    tab.visit(address + page)
    assert tab.run("document.documentElement.scrollWidth") <= width
