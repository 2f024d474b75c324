"""The `gitlab` format, checked against GitLab's documentation, and the `rdjson` format.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hostile

from remat_migrate.report.content import Report, worst_first
from remat_migrate.report.machine_readable import gitlab, rdjson
from remat_migrate.report.terminal.display import Screen, printable
from remat_migrate.rule import Finding, Fix, Safety
from remat_migrate.text import Edit, SourceFile, Span

FOLDER = Path("/project")
SCREEN = Screen(folder=FOLDER)
SEVERITIES = ("info", "minor", "major", "critical", "blocker")


def entries(text: str) -> list[dict[str, Any]]:
    """Return the entries of a document, which have everything that GitLab requires."""
    # "GitLab does not accept a byte order mark at the beginning of the file."
    assert text.isascii()
    read = json.loads(text)
    # "a JSON file that contains an array of objects"
    assert isinstance(read, list)
    for entry in read:
        for field in ("description", "check_name", "fingerprint", "severity"):
            assert isinstance(entry[field], str)
            assert entry[field]
        assert entry["severity"] in SEVERITIES
        place = entry["location"]
        # "Relative to the repository root. Must not start with ./"
        assert isinstance(place["path"], str)
        assert not place["path"].startswith("./")
        assert place["lines"]["begin"] >= 1
        assert place["positions"]["begin"]["line"] == place["lines"]["begin"]
        assert all(isinstance(place["lines"][end], int) for end in ("begin", "end"))
    # "A unique fingerprint": of several with the same one only the first is shown
    assert len({entry["fingerprint"] for entry in read}) == len(read)
    return read


def found(text: str, piece: str, name: str = "src/a.py", **more: Any) -> Finding:
    file = SourceFile(FOLDER / name, text)
    at = text.index(piece)
    return Finding("RMT101", "concrete-option", "gone", file, Span(at, at + len(piece)), **more)


def test_entry() -> None:
    (entry,) = entries(
        gitlab.render(Report((found("x = 1\nf(\n2)\n", "f(\n2)"),), 1, FOLDER), SCREEN)
    )
    assert len(entry.pop("fingerprint")) == 32
    assert entry == {
        "description": "RMT101: gone",
        "check_name": "RMT101",
        "severity": "critical",
        "location": {
            "path": "src/a.py",
            "lines": {"begin": 2, "end": 3},
            "positions": {"begin": {"line": 2, "column": 1}, "end": {"line": 3, "column": 3}},
        },
    }


@hostile.given_reports
def test_hostile_text(report: Report) -> None:
    read = entries(gitlab.render(report, SCREEN))
    listed = worst_first(report.findings)
    assert [e["description"] for e in read] == [
        printable(f"{finding.code}: {finding.message}") for finding in listed
    ]


def test_every_command_writes_gitlab(written: Mapping[tuple[str, str], str]) -> None:
    read = entries(written["check", "gitlab"])
    assert all(entry["location"]["path"].startswith("old/") for entry in read)
    assert written["report", "gitlab"] == written["check", "gitlab"]
    assert len(entries(written["fix", "gitlab"])) < len(read)


def test_every_command_writes_rdjson(written: Mapping[tuple[str, str], str]) -> None:
    checked, left = (json.loads(written[c, "rdjson"])["diagnostics"] for c in ("check", "fix"))
    assert any("suggestions" in one for one in checked)
    assert len(left) < len(checked)
    assert written["report", "rdjson"] == written["check", "rdjson"]


def test_rdjson_suggestions() -> None:
    file = SourceFile(FOLDER / "src/a.py", "é🜁 = f(1)\n")
    other = FOLDER / "b.py"
    edit = Edit(file.path, 5, 6, "g")
    fix = Fix("use g", Safety.SAFE, (edit, Edit(file.path, 8, 8, ", 2")))
    both = Fix("use g", Safety.SAFE, (edit, Edit(other, 0, 0, "x")))
    one, two = (
        Finding("RMT101", "concrete-option", "gone", file, Span(5, 6), fix=f, url="https://x.y")
        for f in (fix, both)
    )
    sources = {file.path: file, other: SourceFile(other, "")}
    document = json.loads(rdjson.render(Report((one, two), 1, FOLDER, sources=sources), SCREEN))
    first, second = document["diagnostics"]
    place = {"start": {"line": 1, "column": 10}, "end": {"line": 1, "column": 11}}
    assert first == {
        "message": "gone\nSafe fix: use g",
        "location": {"path": "src/a.py", "range": place},
        "severity": "ERROR",
        "code": {"value": "RMT101", "url": "https://x.y"},
        # Two edits with nothing but a few characters between them are one suggestion.
        "suggestions": [
            {
                "range": {"start": {"line": 1, "column": 10}, "end": {"line": 1, "column": 13}},
                "text": "g(1, 2",
            },
        ],
    }
    # A reviewer would apply only half of the fix.
    assert "suggestions" not in second
