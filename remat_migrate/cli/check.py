"""Fixing files, showing and verifying the fixes, and suppressing findings by comments."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..discovery.discover import Exclusion
from ..engine.analyse import Analysis
from ..engine.check import check_run, fix_in_memory
from ..engine.run import Run
from ..report.output import say, screen_of, write_diff, write_lines
from ..rule import Finding
from ..settings.settings import check_known, codes
from ..text.regular_files import read_regular
from .exit_codes import CLEAN, ERROR, FINDINGS, SIGNALLED
from .progress_bar import progress_bar
from .results import Result, exit_code, report_of

if TYPE_CHECKING:
    from ..engine.fix_rounds import FileChange, FixOutcome
    from ..verify.fixes import Proved
    from ..verify.options import VerifyOptions


@dataclass(frozen=True, slots=True)
class FixOptions:
    """Which fixes to make.

    Attributes:
        unsafe: whether to make unsafe fixes, too.
        verify: how to verify the fixes; None to make them unverified.
        fixable: prefixes of the codes to fix; empty for all.
        unfixable: prefixes of the codes not to fix.
    """

    unsafe: bool = False
    verify: VerifyOptions | None = None
    fixable: tuple[str, ...] = ()
    unfixable: tuple[str, ...] = ()

    def spares(self, finding: Finding) -> bool:
        """Return whether a finding is not to be fixed."""
        code = finding.code
        return code.startswith(self.unfixable) or not code.startswith(self.fixable or ("",))


def chosen_fixes(
    run: Run, fixable: tuple[str, ...], unfixable: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the values of `--fixable` and `--unfixable`.

    Raises:
        SettingsError: one is no prefix of a rule's code.
    """
    known = sorted(rule.code for rule in run.rules)
    chosen = codes(fixable, "--fixable"), codes(unfixable, "--unfixable")
    for name, prefixes in zip(("--fixable", "--unfixable"), chosen, strict=True):
        check_known(name, prefixes, known)
    return chosen


def apply_fixes(run: Run, how: FixOptions) -> Result:
    """Write the fixes to the files, or the fixed stdin to stdout.

    Prints the fixes that could not be made.

    Raises:
        VerificationError: the code cannot be run; no file was changed.
        ApplyError: the journal cannot be written, or another run wrote meanwhile; no file was
            changed.
    """
    from ..engine.journal import entry_names
    from ..report.terminal.fixing import fixed_by_code

    before = entry_names(run.settings.root)
    outcome, proved = _fixed(run, how)
    failed = _warn_of_skipped_fixes(run, outcome)
    unwritten: Mapping[Path, str] = {}
    if run.overlay:
        _print_stdin(run, outcome)
    else:
        unwritten, is_fault = write_all(outcome.changes, run.settings.root, before)
        failed = failed or is_fault
    # Files that were not written still have their findings.
    analysis = check_run(run) if unwritten else outcome.analysis
    return Result(analysis, fixed_by_code(outcome, unwritten), failed, proved)


def write_all(
    changes: Sequence[FileChange], root: Path, before: Sequence[str]
) -> tuple[Mapping[Path, str], bool]:
    """Write changes; return and print what was not written, and return whether by a fault.

    Raises:
        ApplyError: see `apply_fixes`.
    """
    from ..engine.writing import WriteError, write_changes
    from ..report.terminal.fixing import unwritten_files

    try:
        if changes:
            write_changes(changes, root, before)
    except WriteError as error:
        for line in unwritten_files(error, screen_of(sys.stderr)):
            say(line)
        return error.failures, bool(error.faults)
    return {}, False


def show_diff(run: Run, how: FixOptions, *, exit_zero: bool = False) -> int:
    """Print what the fixes would change and return the exit code."""
    from ..report.terminal.summary import would_fix
    from ..report.terminal.verdicts import verdict_lines

    outcome, proved = _fixed(run, how)
    for change in outcome.changes:
        write_diff(change.before, change.after, sys.stdout)
    failed = _warn_of_skipped_fixes(run, outcome)
    result = Result(outcome.analysis, failed=failed, proved=proved)
    report, screen = report_of(run, result), screen_of(sys.stderr)
    would = would_fix(len(outcome.fixed), report, screen)
    write_lines([*verdict_lines(report, screen), *would], sys.stderr)
    would_change = bool(outcome.changes) and not exit_zero
    return exit_code(run, result, exit_zero=True) or (FINDINGS if would_change else CLEAN)


def fix_without_writing(run: Run, analysis: Analysis, how: FixOptions) -> tuple[Result, bytes]:
    """Fix an analysis in memory; return the result, and the fixes as a patch.

    Raises:
        VerificationError: the code cannot be run.
    """
    outcome, proved = _fixed(run, how, previous=analysis)
    failed = _warn_of_skipped_fixes(run, outcome)
    patch = io.BytesIO()
    stream = io.TextIOWrapper(patch)
    for change in outcome.changes:
        write_diff(change.before, change.after, stream)
    return Result(analysis, failed=failed, proved=proved), patch.getvalue()


def _fixed(
    run: Run,
    how: FixOptions,
    *,
    previous: Analysis | None = None,
) -> tuple[FixOutcome[Analysis], Proved | None]:
    """Apply fixes in memory, without those that verification rejects.

    `previous` is an analysis without fixes.
    """

    def fix(
        withheld: Callable[[Finding], bool] = lambda finding: False,
    ) -> FixOutcome[Analysis]:
        return fix_in_memory(
            run,
            unsafe=how.unsafe,
            withheld=lambda finding: how.spares(finding) or withheld(finding),
            previous=previous,
        )

    if how.verify is None:
        return fix(), None
    from ..report.terminal.verdicts import proof_lines, tally
    from ..verify.fixes import prove_fixes
    from ..verify.prove import ProofInterrupted

    try:
        with progress_bar() as progress:
            targets = run.targets.python
            proved = prove_fixes(fix, run.settings.root, targets, how.verify, progress)
    except ProofInterrupted as interrupt:
        proof = interrupt.proof
        lines = proof_lines(proof, screen_of(sys.stderr))
        write_lines([*lines, tally(proof), "No files changed."], sys.stderr)
        raise SystemExit(SIGNALLED + proof.interrupted) from interrupt
    return proved.outcome, proved


def _warn_of_skipped_fixes(run: Run, outcome: FixOutcome[Analysis]) -> bool:
    """Print the fixes that were not made, and return whether one of them was wrong."""
    from ..report.terminal.fixing import not_made, refusals

    screen = screen_of(sys.stderr)
    excluded = Exclusion(run.nearest)
    for line in refusals(outcome, run.files, excluded.of, screen):
        say(f"warning: {line}")
    failures = sorted(not_made(outcome, screen))
    for is_defect, line in failures:
        say(f"{'error' if is_defect else 'warning'}: {line}")
    return any(is_defect for is_defect, _ in failures)


def _print_stdin(run: Run, outcome: FixOutcome[Analysis]) -> None:
    """Print the fixed stdin in its own encoding."""
    fixed = {change.path: change.after for change in outcome.changes}
    sys.stdout.flush()
    for path, source in run.overlay.items():
        sys.stdout.buffer.write(source.encode(fixed.get(path, source).text))
    sys.stdout.buffer.flush()


def suppress_findings(run: Run) -> int:
    """Add a comment for each finding that suppresses it, and return the exit code.

    Raises:
        ApplyError: the journal cannot be written, or another run wrote meanwhile.
    """
    from ..engine.journal import entry_names
    from ..engine.suppress import suppress
    from ..report.terminal.display import pluralize

    root = run.settings.root
    before = entry_names(root)
    done = suppress(check_run(run))
    unwritten, _ = write_all(done.changes, root, before)
    for finding in done.left:
        place = screen_of(sys.stderr).place(finding.source, finding.span.start)
        why = "cannot be suppressed by a comment; use per-file-ignores in the settings"
        say(f"warning: {place}: {finding.code} {why}")
    say(f"Added {pluralize(done.added, 'noqa comment')}.")
    if done.added and _is_unknown_to_ruff(root):
        say('note: `ruff --fix` removes these comments (RUF102) unless lint.external = ["RMT"]')
    return ERROR if unwritten else CLEAN


def _is_unknown_to_ruff(root: Path) -> bool:
    """Return whether a project configures ruff and does not list these codes as external."""
    for name in (".ruff.toml", "ruff.toml", "pyproject.toml"):
        try:
            text = read_regular(root / name).decode(errors="replace")
        except OSError:
            continue
        if name != "pyproject.toml" or "[tool.ruff" in text:
            return re.search(r"\bexternal\s*=\s*\[[^\]]*RMT", text) is None
    return False
