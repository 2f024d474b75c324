"""The last lines of a report: what was found and mended, and what is not shown."""

from __future__ import annotations

from collections.abc import Iterator

from ..rule import Safety
from .content import Report
from .display import Screen, counted
from .verdicts import proved_summary, verdict_lines


def summary(report: Report, screen: Screen) -> Iterator[str]:
    """What was found and fixed, in a line or two."""
    yield from verdict_lines(report, screen)
    mended = report.fixed is not None and sum(report.fixed.values()) > 0
    if mended or (report.fixed is not None and (report.findings or report.proved)):
        yield _fixed(report, screen)
    hidden = not_shown(report)
    if not report.findings:
        clean = "Nothing left" if mended else f"Nothing found in {counted(report.files, 'file')}"
        yield f"{clean}.{hidden}"
        return
    verb = "Left" if mended else "Found"
    total = screen.paint(f"{verb} {len(report.findings)}", "bold")
    files = counted(len({finding.path for finding in report.findings}), "file")
    yield f"{total} in {files}: {', '.join(shares(report))}.{hidden}"


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
    hidden = not_shown(left)
    found = len(left.findings)
    if number:
        yield f"{screen.paint(f'Would fix {number}', 'bold')}; {found} would be left.{hidden}"
    else:
        yield f"Nothing to fix; {found} found.{hidden}" if found else f"Nothing to fix.{hidden}"


def _fixed(report: Report, screen: Screen) -> str:
    fixed = report.fixed or {}
    total = sum(fixed.values())
    if not total:
        taken_back = len(report.proved.taken_back) if report.proved else 0
        return f"Fixed nothing: {taken_back} taken back." if taken_back else "Fixed nothing."
    proved = f"; {text}" if (text := proved_summary(report)) else ""
    parts = ", ".join(f"{n} {code}" for code, n in sorted(fixed.items()) if n)
    return f"{screen.paint(f'Fixed {total}', 'bold', 'green')}: {parts}{proved}."


def shares(report: Report) -> Iterator[str]:
    """The findings by what it takes to mend them."""
    safe, unsafe = report.count(Safety.SAFE), report.count(Safety.UNSAFE)
    if report.unsafe:
        safe, unsafe = safe + unsafe, 0
    by_hand = len(report.findings) - safe - unsafe
    if safe:
        yield f"{safe} fixable"
    if unsafe:
        yield f"{unsafe} fixable with --unsafe-fixes"
    if by_hand:
        yield f"{by_hand} need{'s' if by_hand == 1 else ''} you"
