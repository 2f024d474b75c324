"""The rules of a run as SARIF describes them: what GitHub shows beside an alert."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence

from ...rule import Finding, Rule
from ..pages.rule_page import rule_page
from ..terminal.display import Screen
from ..terminal.explain import explain
from .shared import shorten

# GitHub cuts longer ones.
_MOST_DESCRIPTION = 1024
_SECTION = re.compile(r"^##\s+", re.MULTILINE)
_PROBLEMS = {"error": "error", "warning": "warning", "note": "recommendation"}
_CONFIDENCES = ("low", "medium", "high")

_Object = dict[str, object]


def rule_descriptors(rules: Sequence[Rule], findings: Sequence[Finding]) -> list[_Object]:
    """The rules that ran, and what is known of others that `findings` name, sorted by code."""
    known = {rule.code: rule for rule in rules}
    named = {finding.code: finding for finding in findings if finding.code not in known}
    doubts: dict[str, str] = {}
    for finding in findings:
        worst = doubts.get(finding.code, "high")
        doubts[finding.code] = min(worst, finding.confidence, key=_CONFIDENCES.index)
    descriptors = {code: _bare(finding) for code, finding in named.items()}
    for code, rule in known.items():
        descriptors[code] = _descriptor(rule, doubts.get(code, "high"))
    return [descriptors[code] for code in sorted(descriptors)]


def _bare(finding: Finding) -> _Object:
    return {
        "id": finding.code,
        "name": finding.name,
        "shortDescription": {"text": finding.name},
        "defaultConfiguration": {"level": finding.severity},
    }


def _descriptor(rule: Rule, precision: str) -> _Object:
    what, why = (_paragraph(rule, title) for title in ("What it does", "Why is this bad?"))
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": _sentence(what) or rule.name},
        "fullDescription": {"text": shorten(f"{what} {why}".strip(), _MOST_DESCRIPTION)},
        "help": {"text": "\n".join(explain(rule, Screen())), "markdown": rule_page(rule)},
        **({"helpUri": rule.url} if rule.url else {}),
        "defaultConfiguration": {
            "level": rule.severity,
            **({} if rule.enabled else {"enabled": False}),
        },
        "properties": {
            "tags": ["jax", "rematerialization", *(["migration"] if rule.since else [])],
            "precision": precision,
            "problem.severity": _PROBLEMS[rule.severity],
            **({"since": rule.since} if rule.since else {}),
        },
    }


def _paragraph(rule: Rule, title: str) -> str:
    """The text of a section of a rule's docstring, in one line, without marks of code."""
    for section in _SECTION.split(inspect.getdoc(rule) or ""):
        head, _, body = section.partition("\n")
        if head.strip() == title:
            return " ".join(body.replace("`", "").split())
    return ""


def _sentence(text: str) -> str:
    """The first sentence of a text, and of a list what introduces it."""
    first = re.split(r"(?<=[.:;])\s+(?=[A-Z(1-9-])", text, maxsplit=1)[0]
    return shorten(re.sub(r"[:;]$", ".", first), _MOST_DESCRIPTION)
