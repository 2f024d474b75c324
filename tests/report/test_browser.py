"""The page in a real browser: loading, filtering, sorting, keyboard, contrast and print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from chromium import Tab, chromium
from report_samples import hostile_report, measurement, whole_report
from support import analysed

from remat_migrate.analysis.sites.find_sites import sites_of
from remat_migrate.report.content import Report, Weighed
from remat_migrate.report.pages.html import render
from remat_migrate.report.site_rows import site_rows
from remat_migrate.report.terminal.display import Screen

FILES = {
    f"{folder}/m{number}.py": "import jax\nimport flax.linen as nn\n"
    "from functools import partial\n\n\n"
    "@partial(jax.checkpoint, concrete=True)\ndef first(x, flag):\n"
    "  if flag:\n    return x\n  return -x\n\n\n"
    "second = jax.checkpoint(abs)\nthird = nn.remat(nn.Dense)\n"
    for number, folder in enumerate(["core", "core/deep", "models", "models/big"])
}  # fmt: skip
VISIBLE = (
    "[...document.querySelectorAll('tbody.row')].filter((row) => row.getClientRects().length)"
    ".map((row) => `${row.dataset.path}:${row.dataset.line}`)"
)
# The least WCAG contrast ratio of any visible text.
CONTRAST = """(() => {
  const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92
    : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const parsed = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const ground = (node) => { for (; node; node = node.parentElement) {
    const c = parsed(getComputedStyle(node).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c.slice(0, 3); } return null; };
  let least = { ratio: 99 };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !node.getClientRects().length) continue;
    const svg = node instanceof SVGElement;
    if (svg && node.tagName !== 'text') continue;
    const style = getComputedStyle(node);
    const a = light(parsed(svg ? style.fill : style.color)), b = light(ground(node) ?? [NaN]);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (!(ratio >= least.ratio)) least = { ratio, text: walk.currentNode.data.trim() };
  }
  return least;
})()"""


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with chromium() as browser:
        yield browser.tab()


@pytest.fixture(autouse=True)
def fresh(request: pytest.FixtureRequest) -> None:
    """Reset the tab to a wide, light window with JavaScript."""
    tab = request.getfixturevalue("tab")
    tab.resize(1280, 1000)
    tab.emulate()
    tab.ask("Emulation.setScriptExecutionDisabled", value=False)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a page with twelve checkpoints: four with findings, one measured."""
    analysis = analysed(FILES)
    root = next(path for path in analysis.findings[0].path.parents if path.name == "core").parent
    found = measurement()
    edited = {e.path for f in analysis.findings if f.fix for e in f.fix.edits}
    rows = [*site_rows(sites_of(analysis.project), analysis.findings)]
    rows[0] = replace(rows[0], weights=found.sites)
    report = Report(
        analysis.findings,
        4,
        root,
        sites=tuple(rows),
        sources={path: analysis.source(path) for path in edited},
        weighed=Weighed((found,)),
    )  # fmt: skip
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(report, Screen(100, False, root)))
    return path


def shown(tab: Tab) -> list[str]:
    found = tab.run(VISIBLE)
    assert isinstance(found, list)
    return found


def status(tab: Tab) -> str:
    return str(tab.run("document.getElementById('shown').textContent"))


def settle(tab: Tab) -> None:
    tab.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def test_page_loads_without_errors_or_requests(tab: Tab, page: Path) -> None:
    tab.open(page)
    assert tab.complaints() == []
    assert tab.requests() == [page.resolve().as_uri()]
    assert len(shown(tab)) == 12
    assert status(tab) == "12 of 12 checkpoints shown"
    assert tab.picture("report.png").stat().st_size > 10_000


def test_hostile_text_is_inert(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(render(hostile_report(), Screen(100, False, Path("/project"))))
    tab.open(path)
    assert tab.complaints() == []
    assert tab.run("document.images.length + document.scripts.length") == 2
    assert tab.requests() == [path.as_uri()]


def test_policy_blocks_injected_scripts(tab: Tab, page: Path) -> None:
    tab.open(page)
    tab.run(
        "(() => { const one = document.createElement('script'); one.textContent ="
        " 'document.title = 1'; document.body.append(one); })()"
    )
    assert tab.run("document.title") != "1"
    assert any("Content Security Policy" in text for text in tab.complaints())


def test_filters(tab: Tab, page: Path) -> None:
    tab.open(page)
    tab.run("document.getElementById('q').focus()")
    tab.write("models/big nothing")
    settle(tab)
    assert shown(tab) == []
    assert status(tab) == "0 of 12 checkpoints shown"
    assert tab.run("document.querySelector('.empty').getClientRects().length") > 0
    tab.run("document.querySelector('button[type=reset]').click()")
    settle(tab)
    assert len(shown(tab)) == 12
    tab.write("models/big abs")
    settle(tab)
    assert shown(tab) == ["models/big/m3.py:13"]
    assert tab.run("location.hash") == "#q=models%2Fbig+abs"
    # The address restores the filter.
    tab.open(page, "#q=models%2Fbig+abs")
    assert shown(tab) == ["models/big/m3.py:13"]
    tab.open(page, "#risk=high")
    assert shown(tab) == [f"{folder}.py:6" for folder in
                          ("core/deep/m1", "core/m0", "models/big/m3", "models/m2")]  # fmt: skip
    for fragment, number in (
        ("#rule=RMT101", 4),
        ("#api=flax.linen.remat", 4),
        ("#with=findings", 4),
        ("#risk=high,none&api=jax.checkpoint&q=second", 4),
    ):
        tab.open(page, fragment)
        assert len(shown(tab)) == number, fragment


def test_sorting(tab: Tab, page: Path) -> None:
    tab.open(page)

    def sorted_by(key: str) -> list[str]:
        tab.run(f"document.querySelector('#sites th[data-key={key}] button').click()")
        return shown(tab)

    by_path = sorted_by("path")
    assert by_path[:3] == ["core/deep/m1.py:6", "core/deep/m1.py:13", "core/deep/m1.py:14"]
    assert sorted_by("path") == by_path[::-1]
    order = "[...document.querySelectorAll('#sites th')].map((th) => th.ariaSort)"
    assert tab.run(order) == [None, "descending", *[None] * 6]
    # Figures sort in descending order; missing ones come last.
    measured = tab.run("document.querySelector('[data-saves]').dataset.path")
    assert sorted_by("saves")[0].startswith(measured)
    fragment = tab.run("location.hash")
    tab.open(page, fragment)
    assert shown(tab)[0].startswith(measured)


def test_keyboard_navigation(tab: Tab, page: Path) -> None:
    tab.open(page)
    tab.press("Tab")
    assert tab.run("document.activeElement.className") == "skip"
    assert tab.run("document.activeElement.getBoundingClientRect().left") >= 0
    seen = []
    for _ in range(60):
        tab.press("Tab")
        seen.append(tab.run("document.activeElement.tagName"))
        outlined = tab.run(
            "getComputedStyle(document.activeElement).outlineStyle !== 'none'"
            " && parseFloat(getComputedStyle(document.activeElement).outlineWidth) >= 1"
        )
        assert outlined, tab.run("document.activeElement.outerHTML.slice(0, 200)")
        if seen[-1] == "SUMMARY":
            break
    assert {"INPUT", "SELECT", "BUTTON", "SUMMARY"} <= set(seen)
    assert tab.run("document.activeElement.parentElement.open") is False
    tab.press("Enter", "\r")
    assert tab.run("document.activeElement.parentElement.open") is True
    tab.picture("report-open.png")
    # A button in a column heading sorts.
    tab.run("document.querySelector('#sites th[data-key=path] button').focus()")
    tab.press("Enter", "\r")
    assert shown(tab)[0] == "core/deep/m1.py:6"


def test_link_to_an_entry_opens_it(tab: Tab, page: Path) -> None:
    tab.open(page)
    name = tab.run("document.querySelectorAll('article.finding')[2].id")
    tab.open(page, f"#{name}")
    assert tab.run(f"document.getElementById('{name}').closest('details').open")
    top = tab.run(f"document.getElementById('{name}').getBoundingClientRect().top")
    assert 0 <= top < 1000
    # Also if a filter hides it.
    tab.open(page, "#api=flax.linen.remat")
    tab.run(f"location.hash = '{name}'")
    settle(tab)
    assert tab.run(f"document.getElementById('{name}').getClientRects().length") > 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_enough_contrast(tab: Tab, page: Path, dark: bool) -> None:
    tab.emulate(dark=dark)
    tab.open(page)
    tab.run("document.getElementById('unfold').click()")
    least = tab.run(CONTRAST)
    assert least["ratio"] >= 4.5, least
    ground = tab.run("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") != dark
    tab.picture(f"report-{'dark' if dark else 'light'}.png", whole=True)


def test_narrow_window_does_not_scroll_sideways(tab: Tab, page: Path) -> None:
    tab.resize(400, 1000)
    tab.open(page)
    tab.run("document.getElementById('unfold').click()")
    assert tab.run("document.documentElement.scrollWidth") <= 400
    tab.picture("report-narrow.png", whole=True)


def test_everything_is_visible_without_javascript(tab: Tab, page: Path) -> None:
    tab.ask("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(page)
    tab.ask("Emulation.setScriptExecutionDisabled", value=False)
    assert len(shown(tab)) == 12
    assert tab.run("[...document.querySelectorAll('details')].every((one) => one.open)")
    assert tab.run("document.getElementById('controls').getClientRects().length") == 0
    hidden = tab.run(
        "[...document.querySelectorAll('pre.code, pre.diff')]"
        ".filter((one) => !one.offsetHeight).length"
    )
    assert hidden == 0


def test_print_layout(tab: Tab, page: Path) -> None:
    tab.open(page)
    tab.emulate(dark=True, media="print")
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert tab.run("document.getElementById('controls').getClientRects().length") == 0
    assert tab.run("[...document.querySelectorAll('details')].every((one) => one.open)")
    assert tab.run("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert tab.run(
        "getComputedStyle(document.querySelector('a[href^=http]'), '::after').content"
    ).startswith('" (http')
    tab.run("dispatchEvent(new Event('afterprint'))")
    assert not tab.run("document.querySelector('tbody.row details').open")
    assert tab.pdf("report.pdf").read_bytes().startswith(b"%PDF")


def test_check_page_has_no_sites(tab: Tab, tmp_path: Path) -> None:
    report = replace(whole_report(), sites=None)
    path = tmp_path / "check.html"
    path.write_text(render(report, Screen(100, False, report.root)))
    tab.open(path, "#risk=high")
    assert tab.complaints() == []
    assert shown(tab) == ["pkg/a.py:5"]
    assert status(tab) == f"1 of {len(report.findings)} findings shown"
