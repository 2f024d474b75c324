"""Temporary folders of runs: what killed runs have left is removed, and nothing else."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from remat_migrate.verify.scratch import scratch_folder


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders that nobody holds a lock of: a killed run's, one with a pipe, and a link."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed, pipe, link = (tmp_path / f"remat-migrate-{name}" for name in ("killed", "pipe", "link"))
    for folder in (killed, pipe, tmp_path / "mine"):
        folder.mkdir()
    (killed / ".lock").touch()
    os.mkfifo(pipe / ".lock")
    (tmp_path / "mine/.lock").touch()
    link.symlink_to(tmp_path / "mine")
    return [killed, pipe, link]


def test_folder_of_a_killed_run(folders: list[Path]) -> None:
    with scratch_folder():
        assert not folders[0].exists()


def test_folders_of_others(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    start = time.monotonic()
    with scratch_folder():
        assert all(folder.exists() for folder in folders)
    assert time.monotonic() - start < 3
