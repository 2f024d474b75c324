"""The last lines of a report: what was found and mended, and what is not shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...rule import Finding, Safety
from ..content import Report, count_fixes
from .display import Screen, pluralize
from .verdicts import proved_summary, verdict_lines


def summary(report: Report, screen: Screen) -> Iterator[str]:
    """What was found and fixed, in a line or two."""
    yield from verdict_lines(report, screen)
    mended = report.fixed is not None and sum(report.fixed.values()) > 0
    if mended or (report.fixed is not None and (report.findings or report.proved)):
        yield _fixed(report, screen)
    parts = []
    if report.problems:
        parts.append(_counted_in("Left" if mended else "Found", report.problems, report, screen))
    elif mended:
        parts.append("Nothing left.")
    elif not report.advice:
        parts.append(f"Nothing found in {pluralize(report.files, 'file')}.")
    parts += _advice(report, screen)
    parts[-1] += not_shown(report)
    yield from parts


def _advice(report: Report, screen: Screen) -> Iterator[str]:
    if report.advice:
        yield _counted_in("Advice:", report.advice, report, screen)


def _counted_in(what: str, found: Sequence[Finding], report: Report, screen: Screen) -> str:
    """`Found 3 in 2 files: 2 fixable, 1 needs you.`"""
    total = screen.paint(f"{what} {len(found)}", "bold")
    files = pluralize(len({finding.path for finding in found}), "file")
    return f"{total} in {files}: {', '.join(shares(found, unsafe=report.unsafe))}."


def not_shown(report: Report) -> str:
    """`  (1 suppressed, 3 known, 2 stale)`: what is not reported; what a baseline has in vain."""
    parts = []
    if report.suppressed:
        parts.append(f"{len(report.suppressed)} suppressed")
    if report.baseline is not None:
        parts.append(f"{len(report.baseline.known)} known")
        if report.baseline.stale:
            parts.append(f"{report.baseline.stale_count} stale")
    return f"  ({', '.join(parts)})" if parts else ""


def would_fix(number: int, left: Report, screen: Screen) -> Iterator[str]:
    """What a diff shows, and what would be left after it."""
    found = len(left.problems)
    if number:
        parts = [f"{screen.paint(f'Would fix {number}', 'bold')}; {found} would be left."]
    else:
        parts = [f"Nothing to fix; {found} found." if found else "Nothing to fix."]
    parts += _advice(left, screen)
    parts[-1] += not_shown(left)
    yield from parts


def _fixed(report: Report, screen: Screen) -> str:
    fixed = report.fixed or {}
    total = sum(fixed.values())
    if not total:
        reverted = len(report.proved.reverted) if report.proved else 0
        return f"Fixed nothing: {reverted} reverted." if reverted else "Fixed nothing."
    proved = f"; {text}" if (text := proved_summary(report)) else ""
    parts = ", ".join(f"{n} {code}" for code, n in sorted(fixed.items()) if n)
    return f"{screen.paint(f'Fixed {total}', 'bold', 'green')}: {parts}{proved}."


def shares(findings: Sequence[Finding], *, unsafe: bool) -> Iterator[str]:
    """Findings by what it takes to fix them.

    Args:
        findings: the findings.
        unsafe: whether unsafe fixes are allowed.
    """
    safe, risky = (count_fixes(findings, safety) for safety in (Safety.SAFE, Safety.UNSAFE))
    if unsafe:
        safe, risky = safe + risky, 0
    by_hand = len(findings) - safe - risky
    if safe:
        yield f"{safe} fixable"
    if risky:
        yield f"{risky} fixable with --unsafe-fixes"
    if by_hand:
        yield f"{by_hand} need{'s' if by_hand == 1 else ''} you"
