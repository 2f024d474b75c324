"""What the command `check` does: fixes in memory to files, a difference or a report."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .engine import Analysis
from .report import Report
from .report.output import say, screen_of, write_diff
from .report.verdicts import verdict_lines
from .rule import Finding
from .run import Run, look, mend

if TYPE_CHECKING:
    from .apply import Outcome
    from .verify.consequence import Proved
    from .verify.options import VerifyOptions
    from .verify.prove import Progress

CLEAN, FINDINGS, FAULT, WRONG = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Result:
    """What there is to report.

    Attributes:
        analysis: what was found, after fixing where that was asked for.
        fixed: how many findings were mended, by code; None where it was not asked for.
        failed: whether a fix was wrong.
        proved: what running the code before and after the fixes showed; None if it was not run.
    """

    analysis: Analysis
    fixed: Mapping[str, int] | None = None
    failed: bool = False
    proved: Proved | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """That fixes are to be proved: how, and who is told of the progress."""

    options: VerifyOptions
    progress: Progress


def apply_fixes(run: Run, *, unsafe: bool, trial: Trial | None = None) -> Result:
    """Write what the fixes give, and say what could not be done.

    A text that came by standard input goes to standard output. With a `trial` only what it proves
    right is written.

    Raises:
        VerificationError: the code cannot be run; no file was changed.
        ApplyError: the journal cannot be written; no file was changed.
    """
    from .journal import WriteError, write_changes
    from .report.fixing import fixed_by_code, unwritten_files

    outcome, proved = _tried(run, unsafe, trial)
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
    return Result(analysis, fixed_by_code(outcome, unwritten), failed, proved)


def show_difference(run: Run, *, unsafe: bool, trial: Trial | None = None) -> int:
    """Print what the fixes would change; the exit code says whether they would."""
    from .report.summary import would_fix

    outcome, proved = _tried(run, unsafe, trial)
    for change in outcome.changes:
        write_diff(change.before, change.after, sys.stdout)
    failed = _complain(run, outcome)
    result = Result(outcome.analysis, failed=failed, proved=proved)
    content, screen = content_of(run, result), screen_of(sys.stderr)
    for line in (
        *verdict_lines(content, screen),
        *would_fix(len(outcome.applied), content, screen),
    ):
        say(line)
    return exit_code(result, exit_zero=True) or (FINDINGS if outcome.changes else CLEAN)


def report_trial(run: Run, trial: Trial) -> Result:
    """What is found, with what running the code before and after its fixes shows; nothing is
    written.

    Raises:
        VerificationError: the code cannot be run.
    """
    outcome, proved = _tried(run, False, trial)
    return Result(look(run), failed=_complain(run, outcome), proved=proved)


def _tried(run: Run, unsafe: bool, trial: Trial | None) -> tuple[Outcome[Analysis], Proved | None]:
    """The fixes, after those that the code's results speak against are taken back."""
    if trial is None:
        return mend(run, unsafe=unsafe), None
    from .verify.consequence import prove_fixes

    request = run.request
    proved = prove_fixes(
        lambda withheld, learned: mend(run, unsafe=unsafe, withheld=withheld, learned=learned),
        request.settings.root,
        request.targets.python,
        trial.options,
        trial.progress,
    )
    return proved.outcome, proved


def content_of(run: Run, result: Result, *, unsafe: bool = False) -> Report:
    """The report of a result."""
    findings = _with_reasons(result)
    edited = {edit.path for finding in findings if finding.fix for edit in finding.fix.edits}
    return Report(
        findings,
        run.files,
        result.analysis.suppressed,
        result.fixed,
        unsafe,
        sources={path: result.analysis.source(path) for path in edited},
        proved=result.proved,
    )


def exit_code(result: Result, *, exit_zero: bool) -> int:
    """The exit code of a run; says which rules failed."""
    for fault in result.analysis.faults:
        say(f"error: {fault}; this is a defect of the rule, please report it")
    if result.analysis.faults or result.failed:
        return FAULT
    if result.proved is not None and result.proved.taken_back:
        return WRONG
    return FINDINGS if result.analysis.findings and not exit_zero else CLEAN


def _with_reasons(result: Result) -> tuple[Finding, ...]:
    """The findings; one whose fix was taken back has none any more, but the reason."""
    if result.proved is None:
        return result.analysis.findings
    from .verify.consequence import finding_key

    reasons = result.proved.reasons
    return tuple(
        replace(finding, fix=None, reason=f"the fix was taken back: {reasons[key]}")
        if (key := finding_key(finding)) in reasons
        else finding
        for finding in result.analysis.findings
    )


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
