"""The fix of a finding does not depend on which paths are named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support import cli, read_files, write_files

FIXTURES = Path(__file__).parents[1] / "fixtures"
PROGRAMS = [
    folder
    for kind in ("training", "programs")
    for folder in sorted((FIXTURES / kind).iterdir())
    if folder.is_dir() and len([*folder.rglob("*.py")]) > 1
]
CHECK = ("--unsafe-fixes", "--output-format", "json", "--no-cache")


def findings(folder: Path, *paths: str | Path, stdin: bytes = b"") -> list[dict[str, Any]]:
    """Return the findings without what depends on the named files."""
    ran = cli(folder, "check", *CHECK, *paths, stdin=stdin)
    rows = json.loads(ran.out)["findings"]
    return [{key: value for key, value in row.items() if key != "reason"} for row in rows]


def in_file(rows: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["path"] == path]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda folder: folder.name)
def test_fixes_are_the_same_however_files_are_named(program: Path, tmp_path: Path) -> None:
    """By folder, by name, from another folder, and on stdin."""
    project = tmp_path / "project"
    shutil.copytree(program, project)
    (project / "pyproject.toml").touch()
    whole = findings(project, ".")
    names = {path for row in whole for path in _edited(row)} | {row["path"] for row in whole}
    for path in sorted(names):
        expected = in_file(whole, path)
        assert findings(project, path) == expected
        elsewhere = json.dumps(findings(tmp_path, f"project/{path}"))
        assert json.loads(elsewhere.replace('"project/', '"')) == expected
        data = (project / path).read_bytes()
        assert findings(project, "--stdin-filename", path, "-", stdin=data) == expected


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda folder: folder.name)
def test_only_named_files_are_written(program: Path, tmp_path: Path) -> None:
    """A file that was named alone is fixed as with all others, or not where those are edited, too."""
    shutil.copytree(program, tmp_path, dirs_exist_ok=True)
    (tmp_path / "pyproject.toml").touch()
    before = read_files(tmp_path)
    for path in sorted({row["path"] for row in findings(tmp_path, ".")}):
        cli(tmp_path, "--fix", "--unsafe-fixes", path)
        after = read_files(tmp_path)
        assert {name for name in before if after[name] != before[name]} <= {path}
        write_files(tmp_path, before)


def _edited(row: dict[str, Any]) -> set[str]:
    return {edit["path"] for edit in (row["fix"] or {"edits": []})["edits"]}
