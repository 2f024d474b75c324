"""The `github` format: annotations as the runner parses them, and the job summary."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hostile
import pytest
from support import cli, write_files

from remat_migrate.report.content import Report, worst_first
from remat_migrate.report.machine_readable import github
from remat_migrate.report.terminal.display import Screen, printable
from remat_migrate.rule import Finding, Fix, Safety
from remat_migrate.text import Edit, SourceFile, Span

ROOT = Path(__file__).parents[2]
FOLDER = Path("/project")

Annotation = tuple[str, dict[str, str], str]


@pytest.fixture(autouse=True)
def _outside_of_github(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def annotation(line: str) -> Annotation:
    """Parse a line as the runner does: command, properties and message."""
    assert not re.search(r"[\r\n]", line)
    assert line.startswith("::")
    head, _, data = line[2:].partition("::")
    command, _, listed = head.partition(" ")
    properties = dict(pair.split("=", 1) for pair in listed.split(",") if pair)
    return command, {name: unescaped(v) for name, v in properties.items()}, unescaped(data)


def unescaped(text: str) -> str:
    for code, letter in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, letter)
    return text


def annotated(report: Report) -> list[Annotation]:
    return [annotation(line) for line in github.render(report, Screen(folder=FOLDER))]


def found(number: int = 1, **more: Any) -> Finding:
    file = SourceFile(FOLDER / "src/a,b.py", "f(1)\ng(\n2)\n")
    span = more.pop("span", Span(0, 4))
    name, message = "concrete-option", more.pop("message", f"gone {number}")
    return Finding("RMT101", name, message, file, span, **more)


def test_annotation() -> None:
    file = found().source
    fix = Fix("use g", Safety.SAFE, (Edit(file.path, 0, 1, "g"),))
    one = found(message="50% of `x::y`,\ngone", fix=fix, reason="because\nso")
    assert list(github.render(Report((one,), 1, FOLDER), Screen())) == [
        "::error title=RMT101 concrete-option,file=src/a%2Cb.py,line=1,endLine=1,col=1,endColumn=5"
        "::50%25 of `x::y`,␊gone%0ASafe fix: use g%0Abecause%0Aso"
    ]
    [(command, properties, _)] = annotated(
        Report((found(span=Span(5, 9), severity="note"),), 1, FOLDER)
    )
    assert command == "notice"
    # GitHub takes columns of one line alone.
    assert (properties["line"], properties["endLine"]) == ("2", "3")
    assert "col" not in properties
    assert "endColumn" not in properties


def test_worst_ten_of_each_level_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = ("note", "warning", "error")
    listed = [found(n, severity=level) for n in range(12) for level in levels]
    shown = annotated(Report(tuple(listed), 1, FOLDER))
    commands = [command for command, _, _ in shown]
    assert commands == ["error"] * 10 + ["warning"] * 10 + ["notice"] * 10
    assert shown[-1] == ("notice", {"title": "remat-migrate"}, "7 more findings not shown")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "anything")
    *_, (_, _, last) = annotated(Report(tuple(listed), 1, FOLDER))
    assert last == "7 more findings in the summary of this job"
    exactly = [found(n, severity=level) for n in range(10) for level in levels]
    assert len(annotated(Report(tuple(exactly), 1, FOLDER))) == 30
    assert "more" not in annotated(Report(tuple(exactly), 1, FOLDER))[-1][2]


@hostile.given_reports
def test_hostile_text_in_annotations(report: Report) -> None:
    shown = annotated(report)
    assert len(shown) == len(report.findings)
    for finding, (command, properties, message) in zip(
        worst_first(report.findings), shown, strict=True
    ):
        assert command == {"note": "notice"}.get(finding.severity, finding.severity)
        assert properties["title"] == f"{finding.code} {finding.name}"
        name = finding.path
        inside = name.relative_to(FOLDER) if name.is_relative_to(FOLDER) else name
        assert properties["file"] == printable(inside.as_posix())
        assert message.startswith(printable(finding.message)[:3000])


def test_paths_are_relative_to_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "checkout/sub/old"
    shutil.copytree(ROOT / "fixtures/old_trainer", folder)
    summary = tmp_path / "summary.md"
    summary.write_text("what another step wrote\n")
    (tmp_path / "checkout/.git").mkdir()
    (folder / "setup.cfg").touch()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    ran = cli(folder, "--output-format", "github", ".")
    shown = [annotation(line) for line in ran.out.splitlines()]
    assert ran.err == ""
    levels = Counter(command for command, _, _ in shown)
    assert all(count <= 10 for count in levels.values())
    assert {properties["file"].split("/")[0] for _, properties, _ in shown[:-1]} == {"sub"}
    text = summary.read_text()
    assert text.startswith("what another step wrote\n## Findings in old\n")
    total = int(re.findall(r"\*\*(\d+) findings\*\*", text)[0])
    assert annotation(ran.out.splitlines()[-1])[2].startswith(f"{total - len(shown) + 1} more")
    cli(folder, "report", "--output-format", "github", "trainer/blocks.py")
    assert "## Checkpoints in " in summary.read_text()


def test_every_command_writes_annotations(written: Mapping[tuple[str, str], str]) -> None:
    assert written["report", "github"] == written["check", "github"]
    checked, left = (written[c, "github"].splitlines() for c in ("check", "fix"))
    assert 0 < len(left) < len(checked)


def test_unwritable_summary_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"pyproject.toml": "", "a.py": "x = 1\n"})
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none/summary.md"))
    ran = cli(tmp_path, "--output-format", "github", ".")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("warning: the job summary cannot be written")
