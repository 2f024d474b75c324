"""The `junit` format, validated with the schema of Jenkins and parsed with junitparser."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hostile
import junitparser
from lxml import etree

from remat_migrate.engine.analyse import Hidden
from remat_migrate.report.content import Report
from remat_migrate.report.machine_readable import junit
from remat_migrate.report.terminal.display import Screen, printable
from remat_migrate.rule import Finding
from remat_migrate.text import SourceFile, Span

ROOT = Path(__file__).parents[2]
FOLDER = Path("/project")
SCHEMA = etree.XMLSchema(etree.parse(ROOT / "tests/schemas/junit-10.xsd"))


def read(text: str) -> Any:
    """Validate a document and return its root."""
    assert text.isascii()
    root = etree.fromstring(text.encode())
    SCHEMA.assertValid(root)
    for counted in root.iter("testsuite", "testsuites"):
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            assert int(counted.get(name)) == len(list(counted.iter(tag)))
    return root


def written(report: Report) -> Any:
    return read(junit.render(report, Screen(folder=FOLDER)))


def found(piece: str, code: str = "RMT101", name: str = "src/a.py", **more: Any) -> Finding:
    file = SourceFile(FOLDER / name, "f(1)\nf(2)\ng(3)\n")
    at = file.text.index(piece)
    message = more.pop("message", "gone")
    return Finding(code, "concrete-option", message, file, Span(at, at + len(piece)), **more)


def test_case_for_each_file_and_rule() -> None:
    findings = (
        found("f(1)", message="gone <1>"),
        found("f(2)", reason="because"),
        found("g(3)", "RMT301", severity="warning"),
        found("f(1)", "RMT000", "b.py"),
    )
    hidden = (Hidden(found("g(3)"), "comment"), Hidden(found("f(1)", name="c.py"), "baseline"))
    root = written(Report(findings, 5, FOLDER, hidden))
    shape = [
        (suite.get("name"), [(case.get("name"), [c.tag for c in case]) for case in suite])
        for suite in root
    ]
    assert shape == [
        ("b.py", [("RMT000 concrete-option", ["error"])]),
        (
            "src/a.py",
            [
                ("RMT101 concrete-option", ["failure"]),
                ("RMT301 concrete-option", ["failure"]),
            ],
        ),
        ("3 files without findings", [("3 files without findings", [])]),
    ]
    failure = root.find(".//failure")
    assert failure.get("message") == "gone <1> (and 1 more)"
    assert failure.get("type") == "error"
    assert failure.text == (
        "src/a.py:1:1: RMT101 gone <1>\n  |\n1 | f(1)\n  | ^^^^\n\n"
        "src/a.py:2:1: RMT101 gone\n  |\n2 | f(2)\n  | ^^^^\nbecause"
    )


def test_no_findings_is_one_passed_case() -> None:
    (suite,) = written(Report((), 0, FOLDER))
    assert [case.get("name") for case in suite] == ["0 files without findings"]


@hostile.given_reports
def test_hostile_text(report: Report) -> None:
    root = written(report)
    failed = [one.text for tag in ("failure", "error", "system-out") for one in root.iter(tag)]
    assert len(failed) == len({(finding.path, finding.code) for finding in report.findings})
    for finding in report.findings:
        assert any(f": {finding.code} {printable(finding.message)}" in text for text in failed)
    names = {suite.get("name") for suite in root}
    assert len(root) == len(names)


def test_every_command_writes_junit(written: Mapping[tuple[str, str], str]) -> None:
    read(written["check", "junit"])
    parsed, left = (
        junitparser.JUnitXml.fromstring(written[c, "junit"].encode()) for c in ("check", "fix")
    )
    assert parsed.tests > parsed.failures > left.failures
    results = [result for suite in parsed for case in suite for result in case.result]
    assert all(result.message and result.text for result in results)
    assert written["report", "junit"] == written["check", "junit"]
