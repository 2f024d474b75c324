"""The undo journal is the user's: what a repository or another user has is not used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support import cli, read_files, write_files

CODE = "import jax  # noqa: RMT999\n"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state/remat-migrate"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_files(tmp_path / "project", {"pyproject.toml": "", "n.py": CODE})
    return tmp_path / "project"


def test_entry_of_another_user(project: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli(project, "--fix")
    fixed = read_files(project)
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "other"))
    assert "nothing to undo" in cli(project, "undo").err
    assert read_files(project) == fixed


def test_journal_in_a_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository could ship it; without another place, runs cannot be undone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(project / "state"))
    assert cli(project, "--fix").code == 0
    assert not (project / "state").exists()
    assert "nothing to undo" in cli(project, "undo").err


@pytest.mark.parametrize("kind", ["link", "writable by others"])
def test_folder_that_others_can_write_to(project: Path, state: Path, kind: str) -> None:
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    state.parent.mkdir()
    if kind == "link":
        state.symlink_to(elsewhere)
    else:
        state.mkdir()
        state.chmod(0o777)
    assert cli(project, "--fix").code == 0
    assert [*elsewhere.iterdir(), *state.iterdir()] == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_entry_is_a_pipe(project: Path, state: Path) -> None:
    cli(project, "--fix")
    [entry] = state.glob("*.json")
    entry.unlink()
    os.mkfifo(entry)
    ran = cli(project, "undo")
    assert (ran.code, "cannot be read" in ran.err) == (2, True)


def test_entries_are_readable_only_by_the_user(project: Path, state: Path) -> None:
    cli(project, "--fix")
    [entry] = state.glob("*.json")
    assert (state.stat().st_mode & 0o777, entry.stat().st_mode & 0o777) == (0o700, 0o600)
