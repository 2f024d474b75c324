"""The last lines of a report: what was found, fixed, and not shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...rule import Finding, Safety
from ..content import Report, count_fixes
from .display import Screen, pluralize
from .verdicts import proved_summary, verdict_lines


def summary(report: Report, screen: Screen) -> Iterator[str]:
    """Yield the verdicts, then what was found and fixed in a line or two."""
    yield from verdict_lines(report, screen)
    has_fixed = report.fixed is not None and sum(report.fixed.values()) > 0
    if has_fixed or (report.fixed is not None and (report.findings or report.proved)):
        yield _fixed(report, screen)
    parts = []
    if report.problems:
        what = "Remaining:" if has_fixed else "Found"
        parts.append(_total(what, report.problems, report, screen))
    elif has_fixed:
        parts.append("No findings left.")
    elif not report.advice:
        parts.append(f"No findings in {pluralize(report.files, 'file')}.")
    yield from _closed(parts, report, screen)


def hints(report: Report) -> Iterator[str]:
    """Yield what to do next."""
    safe = count_fixes(report.findings, Safety.SAFE)
    unsafe = count_fixes(report.findings, Safety.UNSAFE)
    if report.fixed is not None:
        if any(report.fixed.values()):
            yield "To undo the fixes: remat-migrate undo"
    elif safe or unsafe:
        number, kind = (safe, "safe") if safe else (unsafe, "unsafe")
        options = "--fix" if safe else "--fix --unsafe-fixes"
        fixes = f"{number} {kind} fix{'' if number == 1 else 'es'}"
        yield f"To apply {fixes}: {options}; to prove them as well: {options} --verify"


def would_fix(number: int, left: Report, screen: Screen) -> Iterator[str]:
    """Yield what a diff fixes, and what would be left after it."""
    found = len(left.problems)
    if number:
        fixes = screen.paint(f"Would fix {pluralize(number, 'finding')}", "bold")
        parts = [f"{fixes}; {found or 'none'} would be left."]
    else:
        remaining = f"; found {pluralize(found, 'finding')}" if found else ""
        parts = [f"Nothing to fix{remaining}."]
    yield from _closed(parts, left, screen)


def not_shown(report: Report) -> str:
    """Return `  (1 suppressed, 3 known, 2 stale)`: suppressed findings and the baseline's."""
    parts = []
    if report.suppressed:
        parts.append(f"{len(report.suppressed)} suppressed")
    if report.baseline is not None:
        parts.append(f"{report.baseline.known_count} known")
        if report.baseline.stale_count:
            parts.append(f"{report.baseline.stale_count} stale")
    return f"  ({', '.join(parts)})" if parts else ""


def shares(findings: Sequence[Finding], *, unsafe: bool) -> Iterator[str]:
    """Yield how many findings are fixable and how many are not.

    Args:
        findings: the findings.
        unsafe: whether unsafe fixes are allowed.
    """
    safe, risky = (count_fixes(findings, safety) for safety in (Safety.SAFE, Safety.UNSAFE))
    if unsafe:
        safe, risky = safe + risky, 0
    if safe:
        yield f"{safe} fixable"
    if risky:
        yield f"{risky} fixable with --unsafe-fixes"
    withheld = sum(finding.is_withheld for finding in findings)
    if withheld:
        yield f"{withheld} fixable together with other files"
    if manual := len(findings) - safe - risky - withheld:
        yield f"{manual} manual"


def _closed(parts: Sequence[str], report: Report, screen: Screen) -> Iterator[str]:
    """Yield parts of a summary, then the advice and what is not shown."""
    advice = [_total("Advice:", report.advice, report, screen)] if report.advice else []
    *first, last = [*parts, *advice]
    yield from first
    yield last + not_shown(report)


def _total(what: str, found: Sequence[Finding], report: Report, screen: Screen) -> str:
    """Return `Found 3 findings in 2 files: 2 fixable, 1 manual.`"""
    total = screen.paint(f"{what} {pluralize(len(found), 'finding')}", "bold")
    files = pluralize(len({finding.path for finding in found}), "file")
    return f"{total} in {files}: {', '.join(shares(found, unsafe=report.unsafe))}."


def _fixed(report: Report, screen: Screen) -> str:
    fixed = report.fixed or {}
    total = sum(fixed.values())
    if not total:
        reverted = len(report.proved.reverted) if report.proved else 0
        return f"Fixed nothing: {reverted} reverted." if reverted else "Fixed nothing."
    proved = f"; {text}" if (text := proved_summary(report)) else ""
    parts = ", ".join(f"{n} {code}" for code, n in sorted(fixed.items()) if n)
    return f"{screen.paint(f'Fixed {total}', 'bold', 'green')}: {parts}{proved}."
