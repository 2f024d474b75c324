"""The format `github`: annotations on a pull request, and the table of all in the job's summary.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import os
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from ...rule import Finding, Severity
from ..content import Report
from ..outputs import SUMMARY_VARIABLE
from ..terminal.display import Screen, pluralize, printable
from ..terminal.full import fix_tag
from ..terminal.summary import summary
from .shared import (
    file_uri,
    fix_lines,
    on_disk,
    place,
    portable_path,
    region,
    repository,
    shorten,
    worst_first,
)

# GitHub drops what goes beyond: annotations of a level in a step, letters of a message, and the
# whole of a longer summary.
_MOST_OF_A_LEVEL = 10
_MOST_LETTERS = 4_000
_MOST_BYTES = 1 << 20
_COMMANDS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_PUNCTUATION = str.maketrans({letter: f"\\{letter}" for letter in string.punctuation})


def render(report: Report, screen: Screen) -> Iterator[str]:
    """A command for each annotation, the worst first; the rest is counted in a notice."""
    folder = repository(report.root)
    listed = worst_first(report.findings)
    shown = _most_severe(listed)
    for finding in shown:
        yield _annotation(finding, folder)
    if rest := len(listed) - len(shown):
        where = "in the summary of this job" if os.environ.get(SUMMARY_VARIABLE) else "not shown"
        yield f"::notice title=remat-migrate::{pluralize(rest, 'more finding')} {where}"


def _most_severe(listed: Sequence[Finding]) -> list[Finding]:
    """As many of each level as GitHub shows."""
    shown: list[Finding] = []
    for _, found in groupby(listed, key=lambda finding: finding.severity):
        shown += list(found)[:_MOST_OF_A_LEVEL]
    # What is said about the rest is a notice itself.
    notices = sum(finding.severity == "note" for finding in shown)
    return shown[:-1] if len(shown) < len(listed) and notices == _MOST_OF_A_LEVEL else shown


def write_step_summary(report: Report) -> None:
    """Append the table of all findings to the file that the job's summary is made of, if any.

    Raises:
        OSError: the file cannot be written.
    """
    name = os.environ.get(SUMMARY_VARIABLE)
    if not name:
        return
    file = Path(name)
    taken = file.stat().st_size if file.exists() else 0
    text = step_summary(report, _MOST_BYTES - taken)
    with file.open("a", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def step_summary(report: Report, most: int) -> str:
    """All findings as a table in Markdown, the worst first; of at most `most` bytes."""
    folder = repository(report.root)
    total = " ".join(summary(report, Screen(folder=folder)))
    lines = ["## remat-migrate", "", _cell(total), ""]
    rows = [_row(finding, folder) for finding in worst_first(report.findings)]
    if rows:
        lines += ["| | where | rule | what | fix |", "|---|---|---|---|---|"]
    # What the line about the rest takes is kept free.
    room = most - sum(len(line.encode()) + 1 for line in lines) - 100
    for number, row in enumerate(rows):
        room -= len(row.encode()) + 1
        if room < 0:
            lines += ["", f"{pluralize(len(rows) - number, 'more finding')}: the summary is full."]
            break
        lines.append(row)
    text = "\n".join(lines) + "\n"
    return text if len(text.encode()) <= most else ""


def _annotation(finding: Finding, folder: Path) -> str:
    at = region(*on_disk(finding.source, finding.span))
    properties = {
        "title": f"{finding.code} {finding.name}",
        "file": portable_path(finding.path, folder),
        "line": at.line,
        "endLine": at.end_line,
    }
    if at.line == at.end_line:  # GitHub takes columns of one line alone
        properties |= {"col": at.column, "endColumn": at.end_column}
    head = f"{place(finding, folder)}: {finding.code} {printable(finding.message)}"
    told = "\n".join((head, *fix_lines(finding)))
    given = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    message = _data(shorten(told, _MOST_LETTERS))
    return f"::{_COMMANDS[finding.severity]} {given}::{message}"


def _data(text: str) -> str:
    """A text as the data of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A text as the value of a property of a workflow command."""
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")


def _row(finding: Finding, folder: Path) -> str:
    at = region(*on_disk(finding.source, finding.span))
    path = printable(portable_path(finding.path, folder))
    where = _cell(f"{path}:{at.line}")
    if link := _link(finding.path, folder):
        where = f"[{where}]({link}#L{at.line})"
    rule = _cell(finding.code)
    if finding.url:
        rule = f"[{rule}]({quote(finding.url, safe=':/#?=&%')})"
    cells = (finding.severity, where, rule, _cell(finding.message), _cell(fix_tag(finding)))
    return f"| {' | '.join(cells)} |"


def _link(path: Path, folder: Path) -> str:
    """Where GitHub shows a file of the commit; empty outside GitHub and the repository."""
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_SHA")
    server, name, commit = (os.environ.get(variable, "") for variable in names)
    if not (server and name and commit and path.is_relative_to(folder)):
        return ""
    return f"{server}/{name}/blob/{commit}/{file_uri(path.relative_to(folder))}"


def _cell(text: str) -> str:
    """A text as Markdown for one cell of a table: as it is, but for code between backquotes."""
    parts = _CODE.split(printable(text).replace("\t", " "))
    return "".join(_code(p) if n % 2 else p.translate(_PUNCTUATION) for n, p in enumerate(parts))


def _code(text: str) -> str:
    # What a table makes of these in code depends on who reads it.
    if "|" in text or "\\" in text or not text.strip():
        return f"`{text}`".translate(_PUNCTUATION)
    return f"`{text}`"
