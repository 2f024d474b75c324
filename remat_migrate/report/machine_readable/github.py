"""The `github` format: annotations on a pull request, and a table of findings in the job summary.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from ...discovery.named_outputs import write_named
from ...rule import Finding, Severity
from ..content import Report
from ..outputs import SUMMARY_VARIABLE
from ..pages.code import prose
from ..pages.markdown_text import escape, format_prose
from ..terminal.display import Screen, pluralize, printable, shorten
from ..terminal.full import fix_tag
from ..terminal.summary import summary
from .shared import (
    file_uri,
    fix_lines,
    on_disk,
    portable_path,
    region,
    repository,
    worst_first,
)

# GitHub drops annotations of a level in a step, characters of a message, and whole summaries that
# exceed these limits.
_MAX_PER_LEVEL = 10
_MAX_MESSAGE = 4_000
_MAX_SUMMARY = 1 << 20
# Bytes reserved for the line that counts the findings that do not fit.
_RESERVE = 100
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
    """Append the table of all findings to the job summary, if the run has one.

    Raises:
        OSError: the file cannot be written.
    """
    name = os.environ.get(SUMMARY_VARIABLE)
    if not name:
        return
    file = Path(name)
    used = file.stat().st_size if file.exists() else 0
    write_named(file, step_summary(report, _MAX_SUMMARY - used).encode(), append=True)


def step_summary(report: Report, limit: int) -> str:
    """Return all findings as a Markdown table of at most `limit` bytes, the worst first."""
    folder = repository(report.root)
    total = " ".join(summary(report, Screen(folder=folder)))
    lines = ["## remat-migrate", "", escape(total), ""]
    rows = [_row(finding, folder) for finding in worst_first(report.findings)]
    if rows:
        lines += ["| | where | rule | what | fix |", "|---|---|---|---|---|"]
    room = limit - sum(len(line.encode()) + 1 for line in lines) - _RESERVE
    for number, row in enumerate(rows):
        room -= len(row.encode()) + 1
        if room < 0:
            lines += ["", f"{pluralize(len(rows) - number, 'more finding')}: the summary is full."]
            break
        lines.append(row)
    text = "\n".join(lines) + "\n"
    return text if len(text.encode()) <= limit else ""


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


def _row(finding: Finding, folder: Path) -> str:
    at = region(*on_disk(finding.source, finding.span))
    where = escape(f"{portable_path(finding.path, folder)}:{at.line}")
    if link := _link(finding.path, folder):
        where = f"[{where}]({link}#L{at.line})"
    rule = escape(finding.code)
    if finding.url:
        rule = f"[{rule}]({quote(finding.url, safe=':/#?=&%')})"
    message = format_prose(prose(finding.message))
    return f"| {' | '.join((finding.severity, where, rule, message, fix_tag(finding)))} |"


def _link(path: Path, folder: Path) -> str:
    """Return the URL of a file in the commit; empty outside GitHub and the repository."""
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_SHA")
    server, name, commit = (os.environ.get(variable, "") for variable in names)
    if not (server and name and commit and path.is_relative_to(folder)):
        return ""
    return f"{server}/{name}/blob/{commit}/{file_uri(path.relative_to(folder))}"
