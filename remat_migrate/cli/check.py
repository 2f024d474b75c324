"""What the command `check` does: fixes in memory to files, a difference or a report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..analysis.sites.site import sites_of
from ..discovery.globs import matcher
from ..engine.analyse import Analysis
from ..engine.baseline import Choice, read_baseline, write_baseline
from ..engine.check import check_run, compare_with_baseline, coverage, fix_in_memory, hide_known
from ..engine.progress import Progress
from ..engine.run import Run
from ..errors import UsageError
from ..report.content import Report
from ..report.output import say, screen_of, write_diff, write_report
from ..rule import Finding
from ..settings import fails_run

if TYPE_CHECKING:
    from ..analysis.needs.need import Learned
    from ..cache.kept import Kept
    from ..engine.apply import Outcome
    from ..measure.fix_effects import FixEffects
    from ..measure.worker.records import SiteMeasurement
    from ..report.outputs import Output
    from ..verify.fixes import FindingKey, Proved
    from ..verify.options import VerifyOptions

CLEAN, FINDINGS, FAULT, WRONG = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Result:
    """What there is to report.

    Attributes:
        analysis: what was found, after fixing where that was asked for.
        fixed: how many findings were mended, by code; None where it was not asked for.
        failed: whether a fix was wrong.
        proved: what running the code before and after the fixes showed; None if it was not run.
        weighed: what unsafe fixes do to the configured targets; None if none was measured.
    """

    analysis: Analysis
    fixed: Mapping[str, int] | None = None
    failed: bool = False
    proved: Proved | None = None
    weighed: FixEffects | None = None


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
        ApplyError: the journal cannot be written, or another run wrote meanwhile; no file was
            changed.
    """
    from ..engine.journal import WriteError, write_changes
    from ..engine.journal_entries import entry_files
    from ..report.terminal.fixing import fixed_by_code, unwritten_files

    root = run.settings.root
    before = entry_files(root)
    outcome, proved, weighed = _tried(run, unsafe, trial)
    unwritten: Mapping[Path, str] = {}
    broken: list[str] = []
    is_fault = False
    if run.overlay:
        _give_back(run, outcome)
    elif outcome.changes:
        try:
            write_changes(outcome.changes, root, before)
        except WriteError as error:
            unwritten = error.failures
            broken = list(unwritten_files(error, screen_of(sys.stderr)))
            is_fault = bool(error.faults or error.unsettled)
    failed = _complain(run, outcome) or is_fault
    for line in broken:
        say(line)
    # What was not written is as it was, with its findings.
    analysis = check_run(run) if unwritten else outcome.analysis
    return Result(analysis, fixed_by_code(outcome, unwritten), failed, proved, weighed)


def show_difference(
    run: Run, *, unsafe: bool, trial: Trial | None = None, exit_zero: bool = False
) -> int:
    """Print what the fixes would change; the exit code says whether they would."""
    from ..report.terminal.summary import would_fix
    from ..report.terminal.verdicts import verdict_lines

    outcome, proved, weighed = _tried(run, unsafe, trial)
    for change in outcome.changes:
        write_diff(change.before, change.after, sys.stdout)
    failed = _complain(run, outcome)
    result = Result(outcome.analysis, failed=failed, proved=proved, weighed=weighed)
    content, screen = content_of(run, result), screen_of(sys.stderr)
    for line in (
        *verdict_lines(content, screen),
        *would_fix(len(outcome.fixed), content, screen),
    ):
        say(line)
    would_fail = bool(outcome.changes) and not exit_zero
    return exit_code(run, result, exit_zero=True) or (FINDINGS if would_fail else CLEAN)


def report_trial(run: Run, trial: Trial) -> Result:
    """What is found, with what running the code before and after its fixes shows; nothing is
    written.

    Raises:
        VerificationError: the code cannot be run.
    """
    outcome, proved, _ = _tried(run, False, trial)
    return Result(check_run(run), failed=_complain(run, outcome), proved=proved)


def _tried(
    run: Run, unsafe: bool, trial: Trial | None
) -> tuple[Outcome[Analysis], Proved | None, FixEffects | None]:
    """The fixes, without those that measurements or the code's results speak against."""
    weighed = _weighed(run) if unsafe else None
    refused = weighed.refused if weighed else {}

    def made(withheld: Callable[[Finding], bool], learned: frozenset[Learned]) -> Outcome[Analysis]:
        def left_out(finding: Finding) -> bool:
            return withheld(finding) or (bool(refused) and _key(finding) in refused)

        return fix_in_memory(run, unsafe=unsafe, withheld=left_out, learned=learned)

    if trial is None:
        return made(lambda finding: False, frozenset()), None, weighed
    from ..verify.fixes import prove_fixes

    proved = prove_fixes(made, run.settings.root, run.targets.python, trial.options, trial.progress)
    return proved.outcome, proved, weighed


def _weighed(run: Run) -> FixEffects | None:
    """What unsafe fixes do to the targets that the settings name; None where they name none.

    Raises:
        VerificationError: a target cannot be measured.
    """
    settings = run.settings
    if "target" not in settings.measure or run.overlay:
        return None
    from ..measure.fix_effects import measure_fixes
    from ..measure.options import configured_targets, measure_options
    from ..report.terminal.weights import effect_text

    weighed = measure_fixes(
        lambda withheld: fix_in_memory(run, unsafe=True, withheld=withheld),
        settings.root,
        configured_targets(settings),
        measure_options(settings),
        settings.base,
        run.progress,
    )
    screen = screen_of(sys.stderr)
    for finding, effect in weighed.kept:
        line, _ = finding.source.position(finding.span.start)
        say(f"{screen.path(finding.path)}:{line}: {finding.code} pays: {effect_text(effect)}")
    return weighed


def _key(finding: Finding) -> FindingKey:
    from ..verify.fixes import finding_key

    return finding_key(finding)


def content_of(run: Run, result: Result, *, unsafe: bool = False) -> Report:
    """The report of a result."""
    findings = _with_reasons(result)
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
        fail_on=run.settings.fail_on,
    )


def with_baseline(run: Run, choice: Choice) -> Run:
    """The run in which what the chosen baseline holds is known.

    Raises:
        UsageError: it cannot be read, or is none.
    """
    file = choice.used(run.settings)
    return replace(run, baseline=read_baseline(file)) if file else run


def keep_known(run: Run, result: Result, file: Path) -> tuple[Run, Result]:
    """Write what was found as known, and say so; the run and the result with that baseline.

    Raises:
        UsageError: a rule failed, so that not all is found; the file cannot be written.
    """
    from ..report.terminal.baselines import written_lines

    analysis = result.analysis
    if analysis.faults:
        raise UsageError(f"--write-baseline: nothing was written: {analysis.faults[0]}")
    written = write_baseline(file, analysis.findings, coverage(run, analysis))
    for line in written_lines(written, screen_of(sys.stderr)):
        say(line)
    run = replace(run, baseline=written.baseline)
    return run, replace(result, analysis=hide_known(run, analysis))


def write_reports(
    content: Report,
    written: Sequence[Output],
    to: TextIO,
    kept: Kept,
    *,
    count_only: bool = False,
) -> None:
    """Write a report to all its destinations, and say what its baseline holds in vain.

    Args:
        content: the report.
        written: the formats, and where they go.
        to: where those go that name no file.
        kept: takes down what is written.
        count_only: as `write_report` has it.

    Raises:
        UsageError: a file cannot be written.
    """
    from ..report.terminal.baselines import stale_lines

    if content.baseline and content.baseline.stale:
        for line in stale_lines(content.baseline, screen_of(sys.stderr)):
            say(line)
    for output in written:
        text = write_report(content, output.format, output.file or to, count_only=count_only)
        if output.file:
            kept.wrote(output.file, text)


def warn_of_waste(result: Result, weights: Sequence[SiteMeasurement]) -> Result:
    """A result in which advice about a checkpoint that was measured to be wasteful is a warning."""
    from ..measure.worker.records import SiteVerdict
    from ..report.content import site_rows

    wasteful = [weight for weight in weights if weight.verdict is SiteVerdict.WASTEFUL]
    analysis = result.analysis
    rows = site_rows(sites_of(analysis.project), analysis.findings, wasteful) if wasteful else ()
    wasted = {finding for row in rows if row.weights for finding in row.findings}
    findings = tuple(
        replace(finding, severity="warning")
        if finding.severity == "note" and finding in wasted
        else finding
        for finding in analysis.findings
    )
    return replace(result, analysis=replace(analysis, findings=findings))


def exit_code(run: Run, result: Result, *, exit_zero: bool) -> int:
    """The exit code of a run; says which rules failed."""
    for fault in result.analysis.faults:
        say(f"error: {fault}; this is a defect of the rule, please report it")
    if result.analysis.faults or result.failed:
        return FAULT
    if result.proved is not None and result.proved.taken_back:
        return WRONG
    fail_on = run.settings.fail_on
    failing = any(fails_run(finding.severity, fail_on) for finding in result.analysis.findings)
    return FINDINGS if failing and not exit_zero else CLEAN


def _with_reasons(result: Result) -> tuple[Finding, ...]:
    """The findings; one whose fix was not made has none any more, but the reason."""
    reasons = dict(_reasons(result))
    if not reasons:
        return result.analysis.findings
    return tuple(
        replace(finding, fix=None, reason=reasons[key])
        if (key := _key(finding)) in reasons
        else finding
        for finding in result.analysis.findings
    )


def _reasons(result: Result) -> Iterator[tuple[FindingKey, str]]:
    """Why fixes were not made, by what names the finding."""
    if result.weighed is not None:
        from ..report.terminal.weights import effect_text

        for key, why in result.weighed.refused.items():
            told = why if isinstance(why, str) else effect_text(why)
            yield key, f"the fix was measured and does not pay: {told}"
    if result.proved is not None:
        for key, told in result.proved.reasons.items():
            yield key, f"the fix was taken back: {told}"


def _complain(run: Run, outcome: Outcome[Analysis]) -> bool:
    """Say which fixes were not made, and why; whether one of them was wrong."""
    from ..report.terminal.fixing import defects, refusals, unreadable

    screen, settings = screen_of(sys.stderr), run.settings
    excluded = matcher(settings.exclude, settings.base)
    refused = refusals(outcome, run.files, excluded, screen)
    for line in (*refused, *unreadable(outcome, screen)):
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
