"""What the command `check` does: fixes in memory to files, a difference or a report."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .engine import Analysis
from .report import Report
from .report.output import say, screen_of, write_diff
from .run import Run, look, mend

if TYPE_CHECKING:
    from .apply import Outcome

CLEAN, FINDINGS, FAULT = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Result:
    """What there is to report.

    Attributes:
        analysis: what was found, after fixing where that was asked for.
        fixed: how many findings were mended, by code; None where it was not asked for.
        failed: whether a fix was wrong.
    """

    analysis: Analysis
    fixed: Mapping[str, int] | None = None
    failed: bool = False


def apply_fixes(run: Run, *, unsafe: bool) -> Result:
    """Write what the fixes give, and say what could not be done.

    A text that came by standard input goes to standard output.

    Raises:
        ApplyError: the journal cannot be written; no file was changed.
    """
    from .journal import WriteError, write_changes
    from .report.fixing import fixed_by_code, unwritten_files

    outcome = mend(run, unsafe=unsafe)
    unwritten: Mapping[Path, str] = {}
    if run.overlay:
        _give_back(run, outcome)
    elif outcome.changes:
        try:
            write_changes(outcome.changes, run.request.settings.root)
        except WriteError as error:
            unwritten = error.failures
    failed = _complain(run, outcome)
    for line in unwritten_files(unwritten, screen_of(sys.stderr)):
        say(f"warning: {line}")
    # What was not written is as it was, with its findings.
    analysis = look(run) if unwritten else outcome.analysis
    return Result(analysis, fixed_by_code(outcome, unwritten), failed)


def show_difference(run: Run, *, unsafe: bool) -> int:
    """Print what the fixes would change; the exit code says whether they would."""
    from .report.summary import would_fix

    outcome = mend(run, unsafe=unsafe)
    for change in outcome.changes:
        write_diff(change.before, change.after, sys.stdout)
    failed = _complain(run, outcome)
    result = Result(outcome.analysis, failed=failed)
    for line in would_fix(len(outcome.applied), content_of(run, result), screen_of(sys.stderr)):
        say(line)
    return exit_code(result, exit_zero=True) or (FINDINGS if outcome.changes else CLEAN)


def content_of(run: Run, result: Result, *, unsafe: bool = False) -> Report:
    """The report of a result."""
    findings = result.analysis.findings
    edited = {edit.path for finding in findings if finding.fix for edit in finding.fix.edits}
    return Report(
        findings,
        run.files,
        result.analysis.suppressed,
        result.fixed,
        unsafe,
        sources={path: result.analysis.source(path) for path in edited},
    )


def exit_code(result: Result, *, exit_zero: bool) -> int:
    """The exit code of a run; says which rules failed."""
    for fault in result.analysis.faults:
        say(f"error: {fault}; this is a defect of the rule, please report it")
    if result.analysis.faults or result.failed:
        return FAULT
    return FINDINGS if result.analysis.findings and not exit_zero else CLEAN


def _complain(run: Run, outcome: Outcome[Analysis]) -> bool:
    """Say which fixes were not made, and why; whether one of them was wrong."""
    from .report.fixing import defects, refusals

    screen = screen_of(sys.stderr)
    for line in refusals(outcome, run.targets, screen):
        say(f"warning: {line}")
    faults = list(defects(outcome, screen))
    for line in faults:
        say(f"error: {line}")
    return bool(faults)


def _give_back(run: Run, outcome: Outcome[Analysis]) -> None:
    """Print the text that came by standard input, mended, in its own encoding."""
    fixed = {change.path: change.after for change in outcome.changes}
    sys.stdout.flush()
    for path, source in run.overlay.items():
        sys.stdout.buffer.write(source.encode(fixed.get(path, source).text))
    sys.stdout.buffer.flush()
