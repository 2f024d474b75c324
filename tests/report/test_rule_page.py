"""The rules' pages in `docs/rules` are those that the rules give."""

from __future__ import annotations

from pathlib import Path

from remat_migrate.engine.rules import load_rules
from remat_migrate.report.pages.rule_page import page_name, pages, rule_page, write_pages

DOCS = Path(__file__).parents[2] / "docs" / "rules"


def test_docs_are_up_to_date() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    assert written == pages(load_rules()), "run `remat-migrate rules --write docs/rules`"


def test_every_page_has_all_sections() -> None:
    for rule in load_rules():
        page = rule_page(rule)
        assert page.startswith(f"# {rule.code} {rule.name}\n")
        for heading in ("## What it does", "## Why is this bad?", "## Fix", "## Examples"):
            assert f"\n{heading}\n" in page, (rule.code, heading)
        assert page.count("```") % 2 == 0


def test_pages_of_removed_rules_are_deleted(tmp_path: Path) -> None:
    (tmp_path / "RMT999-gone.md").write_text("old")
    (tmp_path / "notes.md").write_text("mine")
    rules = load_rules()
    write_pages(rules, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"README.md", "notes.md", *(page_name(rule) for rule in rules)}
