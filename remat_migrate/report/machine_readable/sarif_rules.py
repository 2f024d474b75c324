"""The rules of a run as SARIF reporting descriptors, which GitHub shows beside an alert."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ...rule import Finding, Rule
from ..pages.rule_page import rule_page
from ..terminal.display import Screen, shorten
from ..terminal.explain import explain

# GitHub cuts longer descriptions.
_MAX_DESCRIPTION = 1024
_SECTION = re.compile(r"^##\s+", re.MULTILINE)
_PROBLEMS = {"error": "error", "warning": "warning", "note": "recommendation"}
_CONFIDENCES = ("low", "medium", "high")

_Object = dict[str, Any]


def rule_descriptors(rules: Sequence[Rule], findings: Sequence[Finding]) -> list[_Object]:
    """Return the rules that ran and any others that findings name, sorted by code."""
    confidences: dict[str, set[str]] = defaultdict(lambda: {"high"})
    for finding in findings:
        confidences[finding.code].add(finding.confidence)
    descriptors = {finding.code: _minimal_descriptor(finding) for finding in findings}
    for rule in rules:
        precision = min(confidences[rule.code], key=_CONFIDENCES.index)
        descriptors[rule.code] = _descriptor(rule, precision)
    return [descriptors[code] for code in sorted(descriptors)]


def _minimal_descriptor(finding: Finding) -> _Object:
    return {
        "id": finding.code,
        "name": finding.name,
        "shortDescription": {"text": _title(finding.name)},
        "defaultConfiguration": {"level": finding.severity},
    }


def _descriptor(rule: Rule, precision: str) -> _Object:
    what, why = (_section(rule, title) for title in ("What it does", "Why is this bad?"))
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": _title(rule.name)},
        "fullDescription": {"text": shorten(f"{what} {why}".strip(), _MAX_DESCRIPTION)},
        "help": {"text": "\n".join(explain(rule, Screen())), "markdown": rule_page(rule)},
        **({"helpUri": rule.url} if rule.url else {}),
        "defaultConfiguration": {"level": rule.severity},
        "properties": {
            "tags": ["jax", "rematerialization", *(["migration"] if rule.since else [])],
            "precision": precision,
            "problem.severity": _PROBLEMS[rule.severity],
            **({"since": rule.since} if rule.since else {}),
        },
    }


def _section(rule: Rule, title: str) -> str:
    """Return a section of a rule's docstring as one line without backquotes."""
    for section in _SECTION.split(inspect.getdoc(rule) or ""):
        head, _, body = section.partition("\n")
        if head.strip() == title:
            return " ".join(body.replace("`", "").split())
    return ""


def _title(name: str) -> str:
    """Return the name of a rule as the title of an alert: `Prevent CSE in scan`."""
    words = name.replace("-", " ")
    return re.sub(r"\bcse\b", "CSE", words[:1].upper() + words[1:])
