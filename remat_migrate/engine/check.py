"""Checking and fixing the files of a run in memory, with its baseline applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..rule import Finding, Fix, Safety
from ..text import SourceFile
from .analyse import Analysis, Hidden, analyse
from .baseline import Comparison, Coverage, KnownFindings, compared
from .run import Run

if TYPE_CHECKING:
    from .fix_rounds import FixOutcome


def check_run(run: Run) -> Analysis:
    """Return what the rules find, with the findings of the baseline hidden."""
    return hide_known(run, analyse(run))


def fix_in_memory(
    run: Run,
    *,
    unsafe: bool,
    withheld: Callable[[Finding], bool] = lambda finding: False,
    previous: Analysis | None = None,
) -> FixOutcome:
    """Apply fixes to the targets in memory.

    Args:
        run: the run.
        unsafe: also apply unsafe fixes.
        withheld: whether to skip the fix of a finding.
        previous: an earlier analysis, to reuse what it read.
    """
    from ..text.regular_files import write_obstacle
    from .fingerprint import key_of
    from .fix_rounds import fix_to_fixed_point

    last = previous
    known = KnownFindings(run.baseline) if run.baseline else None

    def analyse_again(texts: Mapping[Path, SourceFile]) -> Analysis:
        nonlocal last
        last = analyse(run, texts, last)
        return hide_known(run, last, known)

    files = run.files
    outcome = fix_to_fixed_point(
        analyse_again,
        frozenset({Safety.SAFE, Safety.UNSAFE} if unsafe else {Safety.SAFE}),
        lambda path: path in run.overlay or (path in files and not write_obstacle(path)),
        withheld,
    )
    reasons = {key_of(one.finding): one.reason for one in outcome.dropped}
    if not reasons:
        return outcome
    findings = tuple(
        replace(finding, fix=Fix.manual(f"the fix was not made: {reason}"))
        if (reason := reasons.get(key_of(finding)))
        else finding
        for finding in outcome.analysis.findings
    )
    return replace(outcome, analysis=replace(outcome.analysis, findings=findings))


def hide_known(run: Run, analysis: Analysis, known: KnownFindings | None = None) -> Analysis:
    """Hide the findings that the run's baseline holds; `known` is for further rounds of fixes."""
    if run.baseline is None:
        return analysis
    new, old = (known or KnownFindings(run.baseline)).split(analysis.findings)
    hidden = (*analysis.hidden, *(Hidden(finding, "baseline") for finding in old))
    return replace(analysis, findings=tuple(new), hidden=hidden)


def compare_with_baseline(run: Run, analysis: Analysis) -> Comparison | None:
    """Compare an analysis with the run's baseline, if it has one."""
    if run.baseline is None:
        return None
    known = [hidden.finding for hidden in analysis.hidden if hidden.by == "baseline"]
    return compared(run.baseline, known, coverage(run, analysis))


def coverage(run: Run, analysis: Analysis) -> Coverage:
    """Return the files and rules that an analysis covers: not those that failed."""
    unread = {error.path for error in analysis.project.errors}
    failed = {fault.code for fault in analysis.faults}
    codes = {rule.code for rule in run.enabled_rules}
    return Coverage(run.files - unread, run.folders, frozenset(codes - failed))
