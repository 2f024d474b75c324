"""The `github` format: annotations on a pull request; the job summary is the `markdown` report.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from ...discovery.named_outputs import write_named
from ...discovery.roots import repository
from ...rule import Finding, Severity
from ..content import Report, worst_first
from ..outputs import SUMMARY_VARIABLE
from ..pages import markdown
from ..terminal.display import Screen, pluralize, printable, shorten
from .shared import fix_lines, on_disk, portable_path, region

# GitHub drops annotations of a level in a step, characters of a message, and whole summaries that
# exceed these limits.
_MAX_PER_LEVEL = 10
_MAX_MESSAGE = 4_000
_MAX_SUMMARY = 1 << 20
_COMMANDS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report, screen: Screen) -> Iterator[str]:
    """Yield a command for each annotation, the worst first, and a notice that counts the rest."""
    folder = repository(report.root)
    findings = worst_first(report.findings)
    shown = _within_limits(findings)
    for finding in shown:
        yield _annotation(finding, folder)
    if rest := len(findings) - len(shown):
        where = "in the summary of this job" if os.environ.get(SUMMARY_VARIABLE) else "not shown"
        yield f"::notice title=remat-migrate::{pluralize(rest, 'more finding')} {where}"


def _within_limits(findings: Sequence[Finding]) -> list[Finding]:
    shown: list[Finding] = []
    for _, found in groupby(findings, key=lambda finding: finding.severity):
        shown += list(found)[:_MAX_PER_LEVEL]
    # The count of the rest is itself a notice.
    notices = sum(finding.severity == "note" for finding in shown)
    return shown[:-1] if len(shown) < len(findings) and notices == _MAX_PER_LEVEL else shown


def write_step_summary(report: Report) -> None:
    """Append the `markdown` report to the job summary, if the run has one and there is room.

    Raises:
        OSError: the file cannot be written.
    """
    name = os.environ.get(SUMMARY_VARIABLE)
    if not name:
        return
    file = Path(name)
    used = file.stat().st_size if file.exists() else 0
    text = markdown.render(report, Screen(folder=repository(report.root))).encode()
    if used + len(text) <= _MAX_SUMMARY:
        write_named(file, text, append=True)


def _annotation(finding: Finding, folder: Path) -> str:
    at = region(*on_disk(finding.source, finding.span))
    properties = {
        "title": f"{finding.code} {finding.name}",
        "file": portable_path(finding.path, folder),
        "line": at.line,
        "endLine": at.end_line,
    }
    if at.line == at.end_line:  # GitHub rejects columns of a range of lines
        properties |= {"col": at.column, "endColumn": at.end_column}
    # GitHub shows the place and the title, which has the code, above the message.
    lines = (printable(finding.message), *fix_lines(finding))
    message = shorten("\n".join(lines), _MAX_MESSAGE)
    settings = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {settings}::{_data(message)}"


def _data(text: str) -> str:
    """Escape the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape the value of a property of a workflow command."""
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")
