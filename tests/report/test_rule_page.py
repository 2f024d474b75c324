"""The pages of the rules: all sections, and a clean folder."""

from __future__ import annotations

from pathlib import Path

from remat_migrate.engine.rules import load_rules
from remat_migrate.report.pages.rule_page import page_name, rule_page, write_pages


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
