"""The `html` format: the contents of the page, and the escaping of hostile text."""

from __future__ import annotations

import base64
import builtins
import hashlib
import re
import sys
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report_samples import FOLDER, HOSTILE, SCREEN, hostile_report, measurement, whole_report
from support import analysed, cli

from remat_migrate.analysis.sites.find_sites import sites_of
from remat_migrate.errors import UsageError
from remat_migrate.report.content import Report, Weighed
from remat_migrate.report.pages.html import render
from remat_migrate.report.site_rows import site_rows
from remat_migrate.report.terminal.display import Screen
from remat_migrate.text import SourceFile

VOID = {"meta", "input", "br", "img", "link"}


class Page(HTMLParser):
    """Parses a page into its elements with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.within: list[str] = []
        self.raw: dict[str, list[str]] = {"style": [], "script": []}
        self.feed(text)
        self.close()
        assert not self.within, self.within

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.within.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.within.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        inside = self.within[-1] if self.within else ""
        if inside in self.raw:
            self.raw[inside].append(data)
        else:
            self.text += data

    def ids(self) -> list[str]:
        """Return all ids."""
        return [found["id"] or "" for _, found in self.elements if "id" in found]


def test_hostile_text_is_escaped() -> None:
    text = render(hostile_report(), SCREEN)
    page = Page(text)
    kinds = [tag for tag, _ in page.elements]
    assert kinds.count("script") == 2
    assert "img" not in kinds
    assert not [name for _, attributes in page.elements for name in attributes if name[:2] == "on"]
    assert page.text.count("<img src=x onerror=alert(2)>") >= 6
    assert HOSTILE in page.text
    # Attributes are escaped, too.
    [row] = [a for tag, a in page.elements if tag == "tbody"]
    assert row["data-path"] == "a<b>&'\"/mod</script>.py"
    assert len(page.ids()) == len(set(page.ids()))


def test_policy_allows_only_its_own_style_and_scripts() -> None:
    text = render(whole_report(), SCREEN)
    page = Page(text)
    [policy] = [a["content"] or "" for _, a in page.elements if a.get("http-equiv")]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        for content in page.raw[kind]:
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
    loads = [a for _, a in page.elements if "src" in a or a.get("style") or a.get("rel") == "icon"]
    assert loads == []
    assert not [tag for tag, _ in page.elements if tag in ("link", "iframe", "img", "object")]


def test_sites_findings_and_diffs() -> None:
    report = whole_report()
    text = render(report, Screen(100, False, report.root))
    page = Page(text)
    rows = [a for tag, a in page.elements if tag == "tbody" and a.get("class") == "row"]
    assert [(row["data-path"], row["data-line"], row["data-codes"]) for row in rows] == [
        ("pkg/a.py", "5", "RMT101"),
        ("pkg/a.py", "12", ""),
        ("run.sh", "1", "RMT102"),
    ]
    assert page.text.index("concrete=") < page.text.index("static_argnums=(1,)")
    # The fix also edits another file.
    assert "f(1.0, True)" in page.text
    assert "Other findings" in page.text
    for name in page.ids():
        assert not re.search(r"\s", name)
    links = [a["href"] for tag, a in page.elements if tag == "a" and (a["href"] or "")[0] == "#"]
    named = {link[1:] for link in links if link and "=" not in link}
    assert named <= set(page.ids())


def test_no_findings() -> None:
    page = Page(render(Report((), 4, FOLDER, sites=()), SCREEN))
    assert "No checkpoint in 4 files." in page.text
    assert not [tag for tag, _ in page.elements if tag == "form"]


def test_measurements_are_shown_with_their_sites() -> None:
    found = measurement()
    file = SourceFile(FOLDER / "a.py", "f = jax.checkpoint(g)\n")
    analysis = analysed({"a.py": "import jax\nf = jax.checkpoint(abs)\n"})
    [site] = sites_of(analysis.project)
    weight = found.sites[0]._replace(path=site.module.source.path, line=2)
    found = replace(found, sites=(weight,))
    rows = site_rows([site], (), [weight])
    report = Report(
        (), 1, file.path.parent, sites=rows, weighed=Weighed((found,), {"b:c": "no <i>"})
    )
    page = Page(render(report, SCREEN))
    [row] = [a for tag, a in page.elements if a.get("class") == "row"]
    assert (row["data-saves"], row["data-costs"]) == ("300000", "1000")
    assert "saves" in page.text
    assert "Not measured: b:c: no <i>" in page.text


def test_without_jinja2(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object, **more: object) -> object:
        if name.partition(".")[0] == "jinja2":
            raise ImportError(name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    for name in [name for name in sys.modules if name.partition(".")[0] == "jinja2"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"pip install 'remat-migrate\[report\]'"):
        render(whole_report(), SCREEN)


def test_every_command_writes_html(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import jax\nf = jax.checkpoint(abs, concrete=False)\n")
    for command in ("check", "report"):
        ran = cli(tmp_path, command, ".", "--output-format", f"html={command}.html")
        assert (ran.code, ran.out) == (1, "")
        page = Page((tmp_path / f"{command}.html").read_text())
        assert ("Checkpoints" in page.text) == (command == "report")
        assert "concrete=" in page.text


def test_wheel_contains_the_templates() -> None:
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["remat_migrate"]
    package = root / "remat_migrate"
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    templates = set((package / "report/pages/templates").iterdir())
    assert templates
    assert templates <= packed
