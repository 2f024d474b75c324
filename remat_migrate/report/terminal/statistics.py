"""How many findings there are of each rule, as text and as JSON have it."""

from __future__ import annotations

from collections import defaultdict
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
        name: its name.
        findings: how many are reported.
        files: in which files.
        safe: how many of them have a safe fix.
        unsafe: how many have one that is not.
        suppressed: how many more a comment or the settings took away.
        known: how many more the baseline knows.
    """

    code: str
    name: str
    findings: int = 0
    files: set[Path] = field(default_factory=set)
    safe: int = 0
    unsafe: int = 0
    suppressed: int = 0
    known: int = 0


def rule_counts(report: Report) -> tuple[RuleCount, ...]:
    """The rules of which anything was found, those with most findings first."""
    counts: dict[str, RuleCount] = {}

    def of(finding: Finding) -> RuleCount:
        return counts.setdefault(finding.code, RuleCount(finding.code, finding.name))

    for finding in report.findings:
        count = of(finding)
        count.findings += 1
        count.files.add(finding.path)
        if finding.fix is not None and finding.fix.changes:
            count.safe += finding.fix.safety is Safety.SAFE
            count.unsafe += finding.fix.safety is Safety.UNSAFE
    for finding in report.suppressed:
        of(finding).suppressed += 1
    for finding in report.known:
        of(finding).known += 1
    return tuple(sorted(counts.values(), key=lambda count: (-count.findings, count.code)))


def statistics(report: Report, screen: Screen) -> Iterator[str]:
    """A line for each rule, and what its mark means."""
    counts = rule_counts(report)
    if not counts:
        return
    stale: dict[str, int] = defaultdict(int)
    for entry in report.baseline.stale if report.baseline else ():
        stale[entry.code] += entry.count
    number = max(len(str(count.findings)) for count in counts)
    code = max(display_width(count.code) for count in counts)
    name = max(display_width(count.name) for count in counts)
    used = set()
    for count in counts:
        mark = _mark(count, unsafe=report.unsafe)
        used.add(mark)
        files = f"in {pluralize(len(count.files), 'file')}" if count.files else ""
        hidden = [
            f"{n} {what}"
            for n, what in (
                (count.suppressed, "suppressed"),
                (count.known, "known"),
                (stale[count.code], "stale"),
            )
            if n
        ]
        more = f"  ({', '.join(hidden)})" if hidden else ""
        found = screen.paint(f"{count.findings:>{number}}", "bold")
        shown = screen.paint(f"{count.code:<{code}}", "red", "bold")
        fixable = screen.paint(f"{mark:3}", "green")
        yield f"{found}  {shown}  {fixable}  {count.name:<{name}}  {files:<12}{more}".rstrip()
    meant = [f"{mark} {word}" for mark, word in ((_ALL, "all"), (_SOME, "some")) if mark in used]
    if meant:
        option = "--fix --unsafe-fixes" if report.unsafe else "--fix"
        yield ""
        yield f"{', '.join(meant)} of them mended by {option}"


def _mark(count: RuleCount, *, unsafe: bool) -> str:
    fixable = count.safe + (count.unsafe if unsafe else 0)
    if not fixable:
        return ""
    return _ALL if fixable == count.findings else _SOME
