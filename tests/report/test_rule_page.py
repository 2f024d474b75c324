"""The pages of the rules have all sections."""

from __future__ import annotations

from remat_migrate.engine.rules import load_rules
from remat_migrate.report.pages.rule_page import rule_page


def test_every_page_has_all_sections() -> None:
    for rule in load_rules():
        page = rule_page(rule)
        assert page.startswith(f"# {rule.code} {rule.name}\n")
        for heading in ("## What it does", "## Why is this bad?", "## Fix", "## Examples"):
            assert f"\n{heading}\n" in page, (rule.code, heading)
        assert page.count("```") % 2 == 0
