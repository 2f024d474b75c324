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
Row = dict[str, Any]
CHECK = ("--unsafe-fixes", "--output-format", "json", "--no-cache")


def findings(folder: Path, *arguments: str, stdin: bytes = b"") -> list[Row]:
    return json.loads(cli(folder, "check", *CHECK, *arguments, stdin=stdin).out)["findings"]


def check_same(rows: list[Row], whole: list[Row], path: str) -> None:
    """Check that a run over one file has its findings, and only fixes of the whole run.

    If options are set in another file, they are reported where the named file uses them.
    """
    keys = rows[0].keys() - {"reason"} if rows else ()
    here = [tuple(row[key] for key in keys) for row in rows]
    for row in whole:
        if row["path"] == path:
            assert tuple(row[key] for key in keys) in here
    assert all((row["code"], row["fix"]) in [(w["code"], w["fix"]) for w in whole] for row in rows)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(folder, marks=[pytest.mark.slow] if number % 12 else [], id=folder.name)
        for number, folder in enumerate(PROGRAMS)
    ],
)
def test_fixes_are_the_same_however_files_are_named(program: Path, tmp_path: Path) -> None:
    """By folder, by name, from another folder, and on stdin. Only named files are written."""
    project = tmp_path / "project"
    shutil.copytree(program, project)
    (project / "pyproject.toml").touch()
    whole = findings(project, ".")
    names = {path for row in whole for path in _edited(row)} | {row["path"] for row in whole}
    for path in sorted(names):
        alone = findings(project, path)
        check_same(alone, whole, path)
        elsewhere = json.dumps(findings(tmp_path, f"project/{path}")).replace('"project/', '"')
        check_same(json.loads(elsewhere), whole, path)
        data = (project / path).read_bytes()
        assert findings(project, "--stdin-filename", path, "-", stdin=data) == alone
        before = read_files(project)
        cli(project, "--fix", "--unsafe-fixes", path)
        after = read_files(project)
        assert {name for name in before if after[name] != before[name]} <= {path}
        write_files(project, before)


LIB = """\
from functools import partial

import jax


@partial(jax.checkpoint, {option})
def block(x, flag):
    return x if flag else -x
"""
CALLER = "from lib import block\n\nblock(1.0, flag=True)\n"
NOTEBOOK = {
    "cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "source": CALLER}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.mark.parametrize(
    ("caller", "text", "settings"),
    [
        ("train.py", CALLER, ""),
        ("third_party/train.py", CALLER, "[tool.remat-migrate]\nexclude = ['third_party/']\n"),
        ("train.ipynb", json.dumps(NOTEBOOK), ""),
    ],
)
def test_callers_that_are_not_named(tmp_path: Path, caller: str, text: str, settings: str) -> None:
    """They are read, and not written: nor are others in their place."""
    lib = LIB.format(option="concrete=True")
    write_files(tmp_path, {"lib.py": lib, caller: text, "pyproject.toml": settings})
    before = read_files(tmp_path)
    for paths in (["lib.py"], [tmp_path / "lib.py"], ["--force-exclude", "lib.py", "lib.py"]):
        [finding] = findings(tmp_path, *map(str, paths))
        edits = [edit["text"] for edit in finding["fix"]["edits"] if edit["path"] == "lib.py"]
        assert edits == ["static_argnums=(1,)"]
        assert finding["reason"].endswith(f"also name {caller}, which the fix edits")
        assert cli(tmp_path, "--fix", *paths).code == 1
        assert read_files(tmp_path) == before
    assert cli(tmp_path, "--fix", "lib.py", caller).code == 0
    assert "static_argnums=(1,)" in (tmp_path / "lib.py").read_text()
    assert "block(1.0, True)" in (tmp_path / caller).read_text()


def test_finding_in_a_file_that_only_calls(tmp_path: Path) -> None:
    """It is reported if that file is named."""
    lib = LIB.format(option="static_argnums=(1,)")
    write_files(tmp_path, {"lib.py": lib, "train.py": CALLER, "pyproject.toml": ""})
    whole = findings(tmp_path, ".")
    assert [(row["path"], row["code"]) for row in whole] == [("train.py", "RMT202")]
    assert findings(tmp_path, "lib.py") == []
    assert findings(tmp_path, "train.py") == findings(tmp_path, "train.py", "lib.py") == whole
    assert "train.py:3:12: RMT202" in cli(tmp_path, "train.py").out
    suppressed = CALLER.rstrip() + "  # noqa: RMT202\n"
    write_files(tmp_path, {"train.py": suppressed})
    assert findings(tmp_path, ".") == []


def _edited(row: Row) -> set[str]:
    return {edit["path"] for edit in (row["fix"] or {"edits": []})["edits"]}
