"""The `sarif` format, validated with the published schema and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import hostile
import pytest
from jsonschema.validators import validator_for
from support import cli, write_files

from remat_migrate.engine.analyse import Fault, Hidden
from remat_migrate.engine.baseline import Comparison, Entry
from remat_migrate.report.content import Report, worst_first
from remat_migrate.report.machine_readable import sarif
from remat_migrate.report.machine_readable.shared import encodable
from remat_migrate.report.terminal.display import Screen
from remat_migrate.rule import Finding, Fix, Related, Safety
from remat_migrate.text import Edit, SourceFile, Span, apply_edits

ROOT = Path(__file__).parents[2]
FOLDER = Path("/project")
SCHEMA = json.loads((ROOT / "tests/schemas/sarif-2.1.0.json").read_text())
VALIDATOR = validator_for(SCHEMA)(SCHEMA)


def read(text: str) -> dict[str, Any]:
    """Validate a document and return its only run."""
    assert text.isascii()
    document: dict[str, Any] = json.loads(text)
    assert [error.message for error in VALIDATOR.iter_errors(document)] == []
    (run,) = document["runs"]
    return cast(dict[str, Any], run)


def run_of(report: Report) -> dict[str, Any]:
    return read(sarif.render(report, Screen(folder=FOLDER)))


def found(file: SourceFile, piece: str = "f(", **more: Any) -> Finding:
    start = file.text.index(piece)
    span = Span(start, start + len(piece))
    return Finding("RMT101", "concrete-option", more.pop("message", "gone"), file, span, **more)


def test_result_has_all_properties() -> None:
    file = SourceFile(FOLDER / "src/a b%.py", "x = 1\ny = '🜁é' + f(\n  2)\n")
    other = SourceFile(Path("/elsewhere/b#.py"), "\n\ncall()\n")
    at = file.text.index("f(")
    finding = found(
        file,
        "f(\n  2)",
        message="x[0](y) is gone",
        severity="warning",
        confidence="medium",
        fix=Fix("use g", Safety.UNSAFE, (Edit(file.path, at, at + 1, "g"),)),
        related=(Related(other, Span(2, 6), "called here"),),
        reason="because",
        url="https://docs.jax.dev",
    )
    run = run_of(Report((finding,), 5, root=FOLDER, sources={file.path: file}))
    region = {"startLine": 2, "startColumn": 13, "endLine": 3, "endColumn": 5}
    here = {"uri": "src/a%20b%25.py", "uriBaseId": "%SRCROOT%"}
    (result,) = run["results"]
    assert list(result.pop("partialFingerprints")) == ["remat-migrate/v1"]
    assert result == {
        "ruleId": "RMT101",
        "level": "warning",
        # The message must not contain a Markdown link.
        "message": {"text": "x[0] (y) is gone\nUnsafe fix: use g\nbecause"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": here,
                    "region": {**region, "snippet": {"text": "f(\n  2)"}},
                }
            }
        ],
        "relatedLocations": [
            {
                "id": 1,
                "physicalLocation": {
                    "artifactLocation": {"uri": "file:///elsewhere/b%23.py"},
                    "region": {"startLine": 3, "startColumn": 1, "endLine": 3, "endColumn": 5},
                },
                "message": {"text": "called here"},
            }
        ],
        "fixes": [
            {
                "description": {"text": "use g"},
                "artifactChanges": [
                    {
                        "artifactLocation": here,
                        "replacements": [
                            {
                                "deletedRegion": {**region, "endLine": 2, "endColumn": 14},
                                "insertedContent": {"text": "g"},
                            }
                        ],
                    }
                ],
                "properties": {"safety": "unsafe"},
            }
        ],
        "rank": 60.0,
        "properties": {
            "confidence": "medium",
            "safety": "unsafe",
            "url": "https://docs.jax.dev",
        },
    }
    assert run["columnKind"] == "utf16CodeUnits"
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": "file:///project/"}}
    assert run["invocations"] == [{"executionSuccessful": True}]


def test_suppressed_results_come_last() -> None:
    file = SourceFile(FOLDER / "a.py", "f(1)\nf(2)\ng(3)\n")
    one, two, three = (found(file, piece) for piece in ("f(1)", "f(2)", "g(3)"))
    report = Report((three,), 1, FOLDER, (Hidden(one, "comment"), Hidden(two, "settings")))
    results = run_of(report)["results"]
    assert [result.get("suppressions") for result in results] == [
        None,
        [{"kind": "inSource"}],
        [{"kind": "external", "justification": "per-file-ignores in the settings"}],
    ]
    ours = [result["partialFingerprints"]["remat-migrate/v1"] for result in results]
    assert len(set(ours)) == 3


def test_baseline_states() -> None:
    file = SourceFile(FOLDER / "a.py", "f(1)\nf(2)\ng(3)\n")
    new, known, silenced = (found(file, piece) for piece in ("g(3)", "f(1)", "f(2)"))
    entry = Entry("a.py", "RMT101", "", "h(4)", 2)
    compared = Comparison(FOLDER / "baseline.json", (known,), (entry,))
    hidden = (Hidden(known, "baseline"), Hidden(silenced, "comment"))
    run = run_of(Report((new,), 1, FOLDER, hidden, baseline=compared))
    states = {
        result["locations"][0]["physicalLocation"]["region"]["snippet"]["text"]: (
            result.get("baselineState"),
            [one["kind"] for one in result.get("suppressions", [])],
        )
        for result in run["results"]
    }
    assert states == {
        "g(3)": ("new", []),
        "f(1)": ("unchanged", ["external"]),
        "f(2)": (None, ["inSource"]),
    }
    assert all("baselineState" not in one for one in run_of(Report((new,), 1, FOLDER))["results"])


def test_failed_rules_are_notifications() -> None:
    file = SourceFile(FOLDER / "a.py", "f(\n")
    unread = Finding("RMT000", "unreadable-file", "cannot be parsed", file, Span(0, 0))
    fault = Fault("RMT201", file.path, "ValueError: no", "Traceback")
    (invocation,) = run_of(Report((unread,), 1, FOLDER, faults=(fault,)))["invocations"]
    assert not invocation["executionSuccessful"]
    told = invocation["toolExecutionNotifications"]
    assert [one["message"]["text"] for one in told] == ["rule RMT201 failed: ValueError: no"]
    assert run_of(Report((unread,), 1, FOLDER))["invocations"][0]["executionSuccessful"]


def test_results_stay_within_githubs_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    file = SourceFile(FOLDER / "a.py", "".join(f"f({n})\n" for n in range(40)))
    notes = [found(file, f"f({n})", severity="note") for n in range(38)]
    error, warning = found(file, "f(38)"), found(file, "f(39)", severity="warning")
    report = Report((*notes, warning, error), 1, FOLDER)
    monkeypatch.setattr(sarif, "_MAX_RESULTS", 3)
    run = run_of(report)
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert told["message"]["text"].startswith("the 37 least severe of 40 results are omitted")


@hostile.given_reports
def test_hostile_text(report: Report) -> None:
    run = run_of(report)
    results = run["results"]
    assert len(results) == len(report.findings) + len({one.finding for one in report.hidden})
    for finding, result in zip(worst_first(report.findings), results, strict=False):
        place = result["locations"][0]["physicalLocation"]
        assert path_of(place["artifactLocation"]) == finding.path
        assert span_of(place["region"], finding.source) == finding.span
        changes = result.get("fixes", [{"artifactChanges": []}])[0]["artifactChanges"]
        edits = [edit_of(one, finding.source) for c in changes for one in c["replacements"]]
        wanted = sorted(finding.fix.edits) if finding.fix else []
        # Lone surrogates cannot be encoded.
        assert edits == [replace(edit, text=encodable(edit.text)) for edit in wanted]


def path_of(location: dict[str, Any]) -> Path:
    name = unquote(location["uri"], errors="surrogateescape")
    return FOLDER / name if "uriBaseId" in location else Path(name.removeprefix("file://"))


def span_of(region: dict[str, Any], file: SourceFile) -> Span:
    """Return the span of a region whose columns count UTF-16 units."""
    return Span(
        offset(file, region["startLine"], region["startColumn"]),
        offset(file, region["endLine"], region["endColumn"]),
    )


def offset(file: SourceFile, line: int, column: int) -> int:
    start, units = file.line_starts[line - 1], 0
    while units < column - 1:
        units += 2 if file.text[start] > "\uffff" else 1
        start += 1
    return start


def edit_of(replacement: dict[str, Any], file: SourceFile) -> Edit:
    text = replacement.get("insertedContent", {}).get("text", "")
    return Edit(file.path, *span_of(replacement["deletedRegion"], file), text)


def test_every_command_writes_sarif(written: Mapping[tuple[str, str], str]) -> None:
    checked, reported, left = (read(written[c, "sarif"]) for c in ("check", "report", "fix"))
    assert {fix["properties"]["safety"] for r in checked["results"] for fix in r.get("fixes", [])}
    assert reported["results"] == checked["results"]
    rules = {rule["id"]: rule for rule in checked["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in checked["results"]} <= set(rules)
    assert rules["RMT101"]["shortDescription"] == {"text": "Concrete option"}
    assert len(left["results"]) < len(checked["results"])


def test_stdin_has_the_given_filename(tmp_path: Path) -> None:
    write_files(tmp_path, {"pyproject.toml": ""})
    code = b"import jax\nf = jax.checkpoint(g, concrete=True)\n"
    arguments = ("--output-format", "sarif", "--stdin-filename", "src/new.py", "-")
    (result,) = read(cli(tmp_path, *arguments, stdin=code).out)["results"]
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"] == {"uri": "src/new.py", "uriBaseId": "%SRCROOT%"}
    assert location["region"]["startLine"] == 2


CELLS = (
    ["import jax\n"],
    [
        "%time\n",
        "def g(x):\n",
        "    return 2 * x\n",
        "s = '\"🜁\"'; f = jax.checkpoint(g, concrete=True)\n",
    ],
)


def test_notebook_positions_are_those_of_its_json(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    notebook = {
        "cells": [{**cell, "source": source} for source in CELLS],
        "metadata": {"kernelspec": {"name": "python3", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    write_files(tmp_path, {"pyproject.toml": "", "n.ipynb": text})
    (result,) = read(cli(tmp_path, "--output-format", "sarif", ".").out)["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    file = SourceFile(tmp_path / "n.ipynb", text)
    shown = span_of(region, file)
    assert text[shown.start : shown.end] == region["snippet"]["text"] == "concrete=True"
    assert result["properties"]["cell"] == {"number": 2, "line": 4}
    replacements = result["fixes"][0]["artifactChanges"][0]["replacements"]
    mended = apply_edits(text, [edit_of(one, file) for one in replacements])
    cli(tmp_path, "--fix", ".")
    assert mended == (tmp_path / "n.ipynb").read_text()
