"""A journal for `undo` that came with somebody's repository: none of its entries are used."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from pathlib import Path

import pytest
from support import cli, read_files, write_files

NOW, EVIL = b"x = 2\n", b"evil\n"
CODE = "import jax  # noqa: RMT999\n"


def forge(project: Path, *names: str) -> None:
    """Add entries that would give a file another content."""
    item = {
        "path": "m.py",
        "old": base64.b64encode(zlib.compress(EVIL)).decode(),
        "new_sha256": hashlib.sha256(NOW).hexdigest(),
        "mode": 0o644,
        "group": 0,
    }
    entry = {"version": 1, "created": "x", "files": [item], "signature": "0" * 32}
    folder = project / ".remat_migrate/journal"
    write_files(folder, {name: json.dumps(entry) for name in names})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_files(tmp_path / "project", {"pyproject.toml": "", "m.py": NOW, "n.py": CODE})
    return tmp_path / "project"


NAMES = [f"{number}-{'ab' * 4}-{'0' * 32}" for number in range(9_999_985, 10_000_005)]
CARRIED = [
    "000001-ab.json",
    "000001-ab.open.json",
    *(f"{name}.json" for name in NAMES),
    *(f"{name}.open.json" for name in NAMES),
]


@pytest.mark.parametrize("when", ["before the run", "after the run"])
def test_forged_entries_do_not_matter(project: Path, when: str) -> None:
    before = read_files(project)
    if when == "before the run":
        forge(project, *CARRIED)
        ran = cli(project, "undo")
        assert (ran.code, "nothing to undo" in ran.err) == (2, True)
    assert cli(project, "--fix").code == 0
    fixed = read_files(project)
    assert fixed["n.py"] == b"import jax\n"
    if when == "after the run":
        forge(project, *CARRIED)
        assert cli(project, "--fix").code == 0
        assert read_files(project) == fixed
    assert cli(project, "undo").code == 0
    assert read_files(project) == before
    assert cli(project, "undo", "--force").code == 2
    assert read_files(project) == before


def test_entry_of_another_user(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli(project, "--fix")
    fixed = read_files(project)
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "state"))
    assert "nothing to undo" in cli(project, "undo").err
    assert read_files(project) == fixed


def test_content_under_the_name_of_a_genuine_entry(project: Path) -> None:
    cli(project, "--fix")
    fixed = read_files(project)
    [entry] = (project / ".remat_migrate/journal").iterdir()
    forge(project, entry.name)
    ran = cli(project, "undo")
    assert (ran.code, "its signature is wrong" in ran.err) == (2, True)
    assert read_files(project) == fixed


def test_key_in_a_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository could ship the key; without another place, runs cannot be undone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(project / "state"))
    assert cli(project, "--fix").code == 0
    assert not (project / "state").exists()


@pytest.mark.parametrize("name", [".remat_migrate", ".remat_migrate/journal"])
def test_journal_is_a_link(project: Path, name: str) -> None:
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).symlink_to(elsewhere)
    ran = cli(project, "--fix")
    assert ran.code == 2
    assert "is a symbolic link" in ran.err
    assert list(elsewhere.iterdir()) == []
    assert (project / "n.py").read_text() == CODE


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_entry_is_a_pipe(project: Path) -> None:
    cli(project, "--fix")
    [entry] = (project / ".remat_migrate/journal").iterdir()
    entry.unlink()
    os.mkfifo(entry)
    ran = cli(project, "undo")
    assert ran.code == 2
    assert "cannot read this journal entry" in ran.err


@pytest.mark.parametrize(
    "name",
    [
        "lock",
    ],
)
def test_huge_sparse_files(project: Path, name: str) -> None:
    forge(project, CARRIED[0])
    with (project / ".remat_migrate" / name).open("w") as file:
        file.truncate(2**40)
    assert "nothing to undo" in cli(project, "undo").err
