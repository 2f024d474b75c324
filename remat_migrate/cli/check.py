"""Fixing files, showing and verifying the fixes, and suppressing findings by comments."""

from __future__ import annotations

import io
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..discovery.discover import is_excluded
from ..engine.analyse import Analysis
from ..engine.check import check_run, fix_in_memory
from ..engine.run import Run
from ..report.output import say, screen_of, write_diff, write_lines
from ..rule import Finding
from ..settings.settings import check_known
from ..text.regular_files import read_regular
from .exit_codes import CLEAN, FINDINGS, SIGNALLED
from .progress_bar import progress_bar
from .results import Result, exit_code, report_of

if TYPE_CHECKING:
    from ..engine.fix_rounds import FixOutcome
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
    chosen = (tuple(map(str.upper, fixable)), tuple(map(str.upper, unfixable)))
    for name, prefixes in zip(("--fixable", "--unfixable"), chosen, strict=True):
        check_known(name, prefixes, known)
    return chosen


def apply_fixes(run: Run, how: FixOptions) -> Result:
    """Write the fixes to the files, or the fixed stdin to stdout.

    Prints the fixes that could not be made.

    Raises:
        VerificationError: the code cannot be run; no file was changed.
        ApplyError: a file cannot be written; no file was changed.
    """
    from ..engine.writing import write_changes

    outcome, proved = _fixed(run, how)
    failed = _warn_of_skipped_fixes(run, outcome)
    if run.overlay:
        _print_stdin(run, outcome)
    elif outcome.changes:
        write_changes(outcome.changes, run.settings.root)
    fixed = Counter(one.finding.code for one in outcome.applied)
    return Result(outcome.analysis, fixed, failed, proved)


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
    would = would_fix(len(outcome.applied), report, screen)
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
) -> tuple[FixOutcome, Proved | None]:
    """Apply fixes in memory, without those that verification rejects.

    `previous` is an analysis without fixes.
    """

    def fix(
        withheld: Callable[[Finding], bool] = lambda finding: False,
    ) -> FixOutcome:
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


def _warn_of_skipped_fixes(run: Run, outcome: FixOutcome) -> bool:
    """Print the fixes that were not made, and return whether one of them was wrong."""
    from ..report.terminal.fixing import not_made, refusals

    screen = screen_of(sys.stderr)
    for line in refusals(outcome, run.files, partial(is_excluded, run.nearest), screen):
        say(f"warning: {line}")
    failures = sorted(not_made(outcome, screen))
    for is_defect, line in failures:
        say(f"{'error' if is_defect else 'warning'}: {line}")
    return any(is_defect for is_defect, _ in failures)


def _print_stdin(run: Run, outcome: FixOutcome) -> None:
    """Print the fixed stdin in its own encoding."""
    fixed = {change.path: change.after for change in outcome.changes}
    sys.stdout.flush()
    for path, source in run.overlay.items():
        sys.stdout.buffer.write(source.encode(fixed.get(path, source).text))
    sys.stdout.buffer.flush()


def suppress_findings(run: Run) -> int:
    """Add a comment for each finding that suppresses it, and return the exit code.

    Raises:
        ApplyError: a file cannot be written; no file was changed.
    """
    from ..engine.suppress import suppress
    from ..engine.writing import write_changes
    from ..report.terminal.display import pluralize

    root = run.settings.root
    analysis = check_run(run)
    changes, left = suppress(analysis)
    if changes:
        write_changes(changes, root)
    for finding in left:
        place = screen_of(sys.stderr).place(finding.source, finding.span.start)
        why = "cannot be suppressed by a comment; use per-file-ignores in the settings"
        say(f"warning: {place}: {finding.code} {why}")
    say(f"Suppressed {pluralize(len(analysis.findings) - len(left), 'finding')}.")
    if changes and _is_unknown_to_ruff(root):
        say('note: `ruff --fix` removes these comments (RUF102) unless lint.external = ["RMT"]')
    return CLEAN


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
