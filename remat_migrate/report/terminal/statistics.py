"""The number of findings of each rule, for `--statistics` and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...rule import Finding, Safety
from ..content import Report
from .display import Screen, aligned, pluralize


@dataclass(slots=True)
class RuleCount:
    """The findings of one rule.

    Attributes:
        code: the rule's code.
        name: the rule's name.
        findings: how many are reported.
        files: the files that they are in.
        safe_fixes: how many have a safe fix.
        unsafe_fixes: how many have an unsafe fix.
        suppressed: how many more comments or settings suppress.
        known: how many more are in the baseline.
    """

    code: str
    name: str
    findings: int = 0
    files: set[Path] = field(default_factory=set)
    safe_fixes: int = 0
    unsafe_fixes: int = 0
    suppressed: int = 0
    known: int = 0


def rule_counts(report: Report) -> tuple[RuleCount, ...]:
    """Return the rules with findings, those with the most findings first."""
    counts: dict[str, RuleCount] = {}

    def count_of(finding: Finding) -> RuleCount:
        return counts.setdefault(finding.code, RuleCount(finding.code, finding.name))

    for finding in report.findings:
        count = count_of(finding)
        count.findings += 1
        count.files.add(finding.path)
        count.safe_fixes += finding.has_fix(Safety.SAFE)
        count.unsafe_fixes += finding.has_fix(Safety.UNSAFE)
    for finding in report.suppressed:
        count_of(finding).suppressed += 1
    for finding in report.known:
        count_of(finding).known += 1
    return tuple(sorted(counts.values(), key=lambda count: (-count.findings, count.code)))


def statistics(report: Report, screen: Screen) -> Iterator[str]:
    """Yield a line for each rule."""
    counts = rule_counts(report)
    digits = max((len(str(count.findings)) for count in counts), default=0)
    rows = [
        (
            f"{count.findings:>{digits}}",
            count.code,
            count.name,
            f"in {pluralize(len(count.files), 'file')}" if count.files else "",
            _more(count, report),
        )
        for count in counts
    ]
    for number, code, *rest in aligned(rows):
        cells = (screen.paint(number, "bold"), screen.paint(code, "red", "bold"), *rest)
        yield "  ".join(cells).rstrip()


def _more(count: RuleCount, report: Report) -> str:
    """Return how many findings are fixable, and how many are hidden."""
    fixable = count.safe_fixes + (count.unsafe_fixes if report.unsafe else 0)
    kinds = {"fixable": fixable, "suppressed": count.suppressed, "known": count.known}
    shown = [f"{number} {kind}" for kind, number in kinds.items() if number]
    return f"({', '.join(shown)})" if shown else ""
