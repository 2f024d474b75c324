"""The rules as JSON, with the keys of ruff's `rule --all --output-format json` where they fit."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...rule import Rule
from ..pages.rule_page import fix_availability, fix_kind, rule_page, section


def rule_object(rule: Rule) -> dict[str, object]:
    """Return a rule as JSON has it."""
    return {
        "name": rule.name,
        "code": rule.code,
        "linter": "remat-migrate",
        "summary": section(rule, "What it does"),
        "fix": f"Fix: {fix_kind(rule)}.",
        "fix_availability": fix_availability(rule),
        "fix_safety": None if fix_availability(rule) == "none" else rule.fix_safety,
        "severity": rule.severity,
        "since": rule.since or None,
        "url": rule.url or None,
        "explanation": rule_page(rule),
    }


def render(found: Rule | Iterable[Rule]) -> str:
    """Return one rule as an object, or several as an array."""
    if isinstance(found, Rule):
        return json.dumps(rule_object(found), indent=2)
    return json.dumps([rule_object(rule) for rule in found], indent=2)
