"""The format `junit`: JUnit's XML, which most services for continuous integration show.

A file is a suite, a rule that found something in it a failed case, or a passed one with output
where that does not fail the run, as advice; what is suppressed is skipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from ...engine.rules import UNREADABLE
from ...rule import Finding
from ...settings import fails_run
from ..content import Report
from ..terminal.display import Screen, pluralize, printable
from ..terminal.snippet import Mark, snippet
from .shared import fix_lines, place, portable_path, repository


@dataclass(frozen=True, slots=True)
class _Case:
    """What a rule found in a file, or what of it was suppressed."""

    name: str
    outcome: str
    message: str = ""
    kind: str = ""
    text: str = ""


def render(report: Report, screen: Screen) -> Iterator[str]:
    """The lines of the document; files without findings are counted in one suite."""
    folder = repository(report.root)
    suites = dict(_suites(report, folder))
    passed = report.files - len(suites)
    if passed > 0 or not suites:
        name = f"{pluralize(max(passed, 0), 'file')} without findings"
        suites[name] = [_Case(name, "passed")]
    cases = [case for suite in suites.values() for case in suite]
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield f'<testsuites name="remat-migrate" {_totals(cases)}>'
    for name, suite in suites.items():
        yield f"  <testsuite name={_attribute(name)} {_totals(suite)} skipped={_skipped(suite)}>"
        for case in suite:
            yield from _element(name, case)
        yield "  </testsuite>"
    yield "</testsuites>"


def _suites(report: Report, folder: Path) -> Iterator[tuple[str, list[_Case]]]:
    """The cases of each file with findings, by its path."""
    skipped = {"suppressed": report.suppressed, "in the baseline": report.known}
    cases: dict[Path, list[_Case]] = defaultdict(list)
    for found in _by_rule(report.findings):
        cases[found[0].path].append(_reported(found, report, folder))
    for why, findings in skipped.items():
        for found in _by_rule(findings):
            cases[found[0].path].append(_skip(found, why))
    for path in sorted(cases):
        yield printable(portable_path(path, folder)), cases[path]


def _by_rule(findings: Sequence[Finding]) -> Iterator[list[Finding]]:
    """The findings of each file and rule, by path and code."""
    for _, found in groupby(sorted(findings, key=_file_and_rule), _file_and_rule):
        yield list(found)


def _file_and_rule(finding: Finding) -> tuple[Path, str]:
    return finding.path, finding.code


def _reported(found: Sequence[Finding], report: Report, folder: Path) -> _Case:
    told = "\n\n".join("\n".join(_told(finding, folder)) for finding in found)
    if not any(fails_run(finding.severity, report.fail_on) for finding in found):
        return _Case(_name(found[0]), "system-out", text=told)
    first, more = found[0], len(found) - 1
    return _Case(
        _name(first),
        # What could not be looked at did not fail: it was not tried.
        "error" if first.code == UNREADABLE else "failure",
        printable(first.message) + (f" (and {more} more)" if more else ""),
        first.severity,
        told,
    )


def _skip(found: Sequence[Finding], why: str) -> _Case:
    name, message = f"{_name(found[0])} ({why})", f"{pluralize(len(found), 'finding')} {why}"
    return _Case(name, "skipped", message)


def _name(finding: Finding) -> str:
    return printable(f"{finding.code} {finding.name}")


def _told(finding: Finding, folder: Path) -> Iterator[str]:
    """A finding as text: its place and message, the code, what mends it."""
    yield f"{place(finding, folder)}: {finding.code} {printable(finding.message)}"
    if finding.source.text.strip():
        marks = [Mark(finding.span, primary=True)]
        yield from snippet(finding.source, marks, Screen(), "red").lines
    yield from fix_lines(finding)


def _element(suite: str, case: _Case) -> Iterator[str]:
    head = f"    <testcase name={_attribute(case.name)} classname={_attribute(suite)}"
    if case.outcome == "passed":
        yield f"{head}/>"
        return
    yield f"{head}>"
    attributes = f" message={_attribute(case.message)}" if case.message else ""
    if case.kind:
        attributes += f" type={_attribute(case.kind)}"
    if case.text:
        yield f"      <{case.outcome}{attributes}>{_ascii(escape(case.text))}</{case.outcome}>"
    else:
        yield f"      <{case.outcome}{attributes}/>"
    yield "    </testcase>"


def _totals(cases: Sequence[_Case]) -> str:
    outcomes = [case.outcome for case in cases]
    failures, errors = outcomes.count("failure"), outcomes.count("error")
    return f'tests="{len(cases)}" failures="{failures}" errors="{errors}"'


def _skipped(cases: Sequence[_Case]) -> str:
    return f'"{sum(case.outcome == "skipped" for case in cases)}"'


def _attribute(text: str) -> str:
    return _ascii(quoteattr(text))


def _ascii(text: str) -> str:
    """What is not ASCII as references: standard output may have another encoding than the head."""
    return text.encode("ascii", "xmlcharrefreplace").decode()
