"""The last line of a report, and the statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..rule import Safety
from .content import Report
from .display import Screen, counted
from .verdicts import proved_summary, verdict_lines


def summary(report: Report, screen: Screen) -> Iterator[str]:
    """What was found and fixed, in a line or two."""
    yield from verdict_lines(report, screen)
    if report.fixed is not None:
        yield _fixed(report, screen)
    hidden = _hidden(report)
    if not report.findings:
        clean = (
            "Nothing left" if report.fixed else f"Nothing found in {counted(report.files, 'file')}"
        )
        yield f"{clean}.{hidden}"
        return
    verb = "Left" if report.fixed else "Found"
    total = screen.paint(f"{verb} {len(report.findings)}", "bold")
    files = counted(len({finding.path for finding in report.findings}), "file")
    yield f"{total} in {files}: {', '.join(shares(report))}.{hidden}"


def _hidden(report: Report) -> str:
    """What is not reported, and what the baseline holds in vain."""
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
    if number:
        yield f"{screen.paint(f'Would fix {number}', 'bold')}; {len(left.findings)} would be left."
    else:
        yield f"Nothing to fix; {len(left.findings)} found." if left.findings else "Nothing to fix."


def statistics(report: Report) -> Iterator[str]:
    """How many findings there are of each code, most first."""
    names = {finding.code: finding.name for finding in report.findings}
    counts = Counter(finding.code for finding in report.findings)
    width = max((len(str(n)) for n in counts.values()), default=0)
    for code, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"{n:>{width}}  {code}  {names[code]}"


def _fixed(report: Report, screen: Screen) -> str:
    fixed = report.fixed or {}
    total = sum(fixed.values())
    if not total:
        return "Fixed nothing."
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
