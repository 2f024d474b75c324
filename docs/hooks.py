"""MkDocs hooks: the reference pages that come from the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from remat_migrate.engine.rules import load_rules
from remat_migrate.measure.devices import DEVICES
from remat_migrate.report.outputs import FORMATS
from remat_migrate.report.pages.rule_page import fix_kind, rule_page
from remat_migrate.rule import Rule
from remat_migrate.settings.keys import MEASURE, SETTINGS, VERIFY, Setting
from remat_migrate.sweep.tables import COLUMNS


def _name(rule: Rule) -> str:
    return f"{rule.code}-{rule.name}.md"


def _finds(rule: Rule) -> str:
    """Return the first sentence on what a rule finds, as a cell of a table."""
    documentation = inspect.getdoc(rule) or ""
    found = re.search(r"^Checks for (.+?)(?:\.\s|\.$|\n\n)", documentation, re.M | re.S)
    return " ".join(found[1].split()).replace("|", r"\|") if found else ""


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _index(rules: Sequence[Rule]) -> str:
    """Return a table of all rules, each with a link to its page."""
    rows = ((f"[{r.code}]({_name(r)}) {r.name}", _finds(r), fix_kind(r)) for r in rules)
    return f"# Rules\n\n{_table(('rule', 'finds', 'fix'), rows)}\n"


_RULES = load_rules()
RULES = {
    "reference/rules/README.md": _index(_RULES),
    **{f"reference/rules/{_name(rule)}": rule_page(rule) for rule in _RULES},
}


def on_config(config: MkDocsConfig) -> None:
    """List the pages of the rules in the navigation."""
    titles = {path: re.match("# (.*)", text)[1] for path, text in RULES.items()}
    _fill(config.nav, "Rules", [{titles[path]: path} if "RMT" in path else path for path in RULES])


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add a page for each rule."""
    for path, text in RULES.items():
        files.append(File.generated(config, path, content=text))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace `<!-- table: NAME -->` with a table from the code."""
    return re.sub("<!-- table: (.*) -->", lambda found: TABLES[found[1]], markdown)


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Remove the column of defaults that mkdocs-click adds: the help texts name them."""
    if page.file.src_uri != "reference/commands.md":
        return html
    return re.sub(r"<t([hd])>(?:(?!</t\1>).)*</t\1>(?=\s*</tr>)", "", html)


def _fill(nav: list[Any], title: str, pages: list[Any]) -> None:
    for entry in nav:
        for name, children in entry.items() if isinstance(entry, dict) else ():
            if name == title:
                entry[name] = pages
            elif isinstance(children, list):
                _fill(children, title, pages)


def _settings(keys: Mapping[str, Setting]) -> str:
    return _table(("key", "meaning"), ((f"`{key}`", of.about) for key, of in keys.items()))


TABLES = {
    "formats": _table(("format", "what it is"), ((f"`{n}`", d) for n, d in FORMATS.items())),
    "settings": _settings(SETTINGS),
    "verify settings": _settings(VERIFY),
    "measure settings": _settings(MEASURE),
    **{
        f"sweep {name}": _table(
            ("column", "type"), ((f"`{column}`", kind) for column, kind in columns.items())
        )
        for name, columns in COLUMNS.items()
    },
    "devices": _table(
        ("device", "memory, GB", "of which JAX uses, GB"),
        (
            (
                f"[{device.name}]({device.source})",
                f"{device.nominal / 1e9:g}",
                f"{device.memory / 1e9:g}",
            )
            for device in DEVICES
        ),
    ),
}
