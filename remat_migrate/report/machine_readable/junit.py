"""The `junit` format: JUnit XML, which most CI services can display.

Each file is a suite, and each rule that reports something in it is a failed case. Advice that does
not fail the run is a passed case with output.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from ...discovery.roots import repository
from ...engine.rules import UNREADABLE
from ...rule import Finding
from ..content import Report
from ..terminal.display import Screen, pluralize, printable
from ..terminal.snippet import Mark, snippet
from .shared import fix_lines, place, portable_path


def render(report: Report, screen: Screen) -> str:
    """Return the document; one suite counts the files without findings."""
    folder = repository(report.root)
    suites: dict[str, list[ET.Element]] = defaultdict(list)

    for found in _by_rule(report.findings):
        name = printable(portable_path(found[0].path, folder))
        suites[name].append(_case(found, report, folder))
    root = ET.Element("testsuites", name="remat-migrate")
    for name in sorted(suites):
        _add_suite(root, name, suites[name])
    passed = report.files - len(suites)
    if passed > 0 or not suites:
        name = f"{pluralize(max(passed, 0), 'file')} without findings"
        _add_suite(root, name, [ET.Element("testcase", name=name)])
    root.attrib |= _totals(root)
    ET.indent(root)
    # Character references in place of what is not ASCII: stdout may have another encoding.
    text = ET.tostring(root, encoding="us-ascii").decode()
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _by_rule(findings: Sequence[Finding]) -> Iterator[list[Finding]]:
    """Group findings by file and rule, sorted by path and code."""

    def file_and_rule(finding: Finding) -> tuple[Path, str]:
        return finding.path, finding.code

    for _, found in groupby(sorted(findings, key=file_and_rule), file_and_rule):
        yield list(found)


def _case(found: Sequence[Finding], report: Report, folder: Path) -> ET.Element:
    first, others = found[0], len(found) - 1
    case = ET.Element("testcase", name=printable(f"{first.code} {first.name}"))
    if not any(map(report.fails, found)):
        result = ET.SubElement(case, "system-out")
    else:
        # In JUnit an error is a test that could not run.
        tag = "error" if first.code == UNREADABLE else "failure"
        message = printable(first.message) + (f" (and {others} more)" if others else "")
        result = ET.SubElement(case, tag, message=message, type=first.severity)
    result.text = "\n\n".join("\n".join(_details(finding, folder)) for finding in found)
    return case


def _details(finding: Finding, folder: Path) -> Iterator[str]:
    yield f"{place(finding, folder)}: {finding.code} {printable(finding.message)}"
    if finding.source.text.strip():
        marks = [Mark(finding.span, primary=True)]
        yield from snippet(finding.source, marks, Screen(), "red").lines
    yield from fix_lines(finding)


def _add_suite(root: ET.Element, name: str, cases: Sequence[ET.Element]) -> None:
    suite = ET.SubElement(root, "testsuite", name=name)
    for case in cases:
        case.set("classname", name)
        suite.append(case)
    suite.attrib |= _totals(suite)


def _totals(element: ET.Element) -> dict[str, str]:
    tags = {"tests": "testcase", "failures": "failure", "errors": "error"}
    return {name: str(len(list(element.iter(tag)))) for name, tag in tags.items()}
