"""The number of findings of each rule, for `--statistics` and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ...rule import Finding, Safety
from ..content import Report
from .display import Screen, display_width, pluralize

_ALL, _SOME = "[*]", "[-]"


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
    """Yield a line for each rule, and the meaning of the marks."""
    counts = rule_counts(report)
    if not counts:
        return
    number = max(len(str(count.findings)) for count in counts)
    code = max(display_width(count.code) for count in counts)
    name = max(display_width(count.name) for count in counts)
    marks = set()
    for count in counts:
        mark = _mark(count, unsafe=report.unsafe)
        marks.add(mark)
        files = f"in {pluralize(len(count.files), 'file')}" if count.files else ""
        kinds = {"suppressed": count.suppressed, "known": count.known}
        hidden = ", ".join(f"{n} {kind}" for kind, n in kinds.items() if n)
        found = screen.paint(f"{count.findings:>{number}}", "bold")
        shown = screen.paint(f"{count.code:<{code}}", "red", "bold")
        fixable = screen.paint(f"{mark:3}", "green")
        line = f"{found}  {shown}  {fixable}  {count.name:<{name}}  {files:<12}"
        yield (f"{line}  ({hidden})" if hidden else line).rstrip()
    legend = [f"{mark} {word}" for mark, word in ((_ALL, "all"), (_SOME, "some")) if mark in marks]
    if legend:
        option = "--fix --unsafe-fixes" if report.unsafe else "--fix"
        yield ""
        yield f"{', '.join(legend)} fixable with {option}"


def _mark(count: RuleCount, *, unsafe: bool) -> str:
    fixable = count.safe_fixes + (count.unsafe_fixes if unsafe else 0)
    if not fixable:
        return ""
    return _ALL if fixable == count.findings else _SOME
