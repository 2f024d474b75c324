"""The result of a run: the report that it makes, the baseline that it writes, its exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..analysis.sites.find_sites import sites_of
from ..engine.analyse import Analysis
from ..engine.baseline import write_baseline
from ..engine.check import compare_with_baseline, coverage, hide_known
from ..engine.run import Run
from ..errors import UsageError
from ..report.content import Report
from ..report.output import say, screen_of, write_report
from ..report.site_rows import site_rows
from ..report.terminal.baselines import stale_lines, written_line
from ..report.terminal.display import display_path
from ..rule import Finding
from .exit_codes import CLEAN, ERROR, FINDINGS, VERIFICATION_FAILED

if TYPE_CHECKING:
    from ..cache.run_cache import RunCache
    from ..engine.fingerprint import Key
    from ..measure.worker.records import SiteMeasurement
    from ..report.outputs import Output
    from ..verify.fixes import Proved


@dataclass(frozen=True, slots=True)
class Result:
    """What a run has to report.

    Attributes:
        analysis: the findings, after fixes if any were applied.
        fixed: the number of fixed findings by code; None without --fix.
        failed: whether a fix could not be written because of a fault.
        proved: the result of verifying the fixes; None without --verify.
    """

    analysis: Analysis
    fixed: Mapping[str, int] | None = None
    failed: bool = False
    proved: Proved | None = None


def report_of(run: Run, result: Result, *, unsafe: bool = False) -> Report:
    """Return the report on a result."""
    findings = tuple(_explained(run, result))
    edited = {path for finding in findings if finding.fix for path in finding.fix.paths}
    return Report(
        findings,
        len(run.files),
        run.settings.root,
        result.analysis.hidden,
        run.enabled_rules,
        result.fixed,
        unsafe,
        sources={path: result.analysis.source(path) for path in edited},
        proved=result.proved,
        faults=result.analysis.faults,
        baseline=compare_with_baseline(run, result.analysis),
        fails=run.fails,
    )


def _explained(run: Run, result: Result) -> Iterator[Finding]:
    """Yield the findings, with the reasons for which their fixes were not applied.

    Fixes that verification reverted are left out. Fixes that also edit files that were not named
    are marked.
    """
    reverted: Mapping[Key, str] = {}
    if result.proved is not None:
        from ..engine.fingerprint import key_of

        reverted = result.proved.reasons
    folder = Path.cwd()
    for finding in result.analysis.findings:
        fix = finding.fix
        if reverted and (why := reverted.get(key_of(finding))):
            finding = replace(finding, fix=None, reason=f"the fix was reverted: {why}")
        elif fix is not None and fix.is_automatic and (others := fix.paths - run.files):
            shown = ", ".join(display_path(path, folder) for path in sorted(others))
            why = f"not applied unless you also name {shown}, which the fix edits"
            reason = "\n".join(filter(None, (finding.reason, why)))
            finding = replace(finding, reason=reason, is_withheld=True)
        yield finding


def warn_of_waste(result: Result, weights: Sequence[SiteMeasurement]) -> Result:
    """Turn advice about checkpoints that were measured to be wasteful into warnings."""
    from ..measure.worker.records import SiteVerdict

    wasteful = [weight for weight in weights if weight.verdict is SiteVerdict.WASTEFUL]
    if not wasteful:
        return result
    analysis = result.analysis
    rows = site_rows(sites_of(analysis.project), analysis.findings, wasteful)
    wasted = {finding for row in rows if row.weights for finding in row.findings}
    findings = tuple(
        replace(finding, severity="warning")
        if finding.severity == "note" and finding in wasted
        else finding
        for finding in analysis.findings
    )
    return replace(result, analysis=replace(analysis, findings=findings))


def record_baseline(run: Run, result: Result, file: Path) -> tuple[Run, Result]:
    """Write the findings to a baseline, and return the run and the result with it applied.

    Raises:
        UsageError: a rule failed, so findings may be missing, or the file cannot be written.
    """
    analysis = result.analysis
    if analysis.faults:
        raise UsageError(f"--write-baseline: no baseline was written: {analysis.faults[0]}")
    written = write_baseline(file, analysis.findings, coverage(run, analysis))
    say(written_line(written, screen_of(sys.stderr)))
    run = replace(run, baseline=written)
    return run, replace(result, analysis=hide_known(run, analysis))


def write_reports(
    report: Report,
    outputs: Sequence[Output],
    stream: TextIO,
    cache: RunCache,
    *,
    count_only: bool = False,
) -> None:
    """Write a report to all its destinations, and list stale baseline entries on stderr.

    Args:
        report: the report.
        outputs: the formats and their files.
        stream: the destination of formats without a file.
        cache: records what is written.
        count_only: see `write_report`.

    Raises:
        UsageError: a file cannot be written.
    """
    if report.baseline and report.baseline.stale:
        for line in stale_lines(report.baseline, screen_of(sys.stderr)):
            say(line)
    for output in outputs:
        text = write_report(report, output.format, output.file or stream, count_only=count_only)
        if output.file:
            cache.record_file(output.file, text)


def exit_code(run: Run, result: Result, *, exit_zero: bool) -> int:
    """Return the exit code of a run, and name the rules that failed on stderr."""
    for fault in result.analysis.faults:
        say(f"error: {fault}; this is a bug in the rule, please report it")
    if result.analysis.faults or result.failed:
        return ERROR
    if result.proved is not None and result.proved.reverted:
        return VERIFICATION_FAILED
    fails = any(map(run.fails, result.analysis.findings))
    return FINDINGS if fails and not exit_zero else CLEAN
