"""The command that compares what is found in real repositories with what was recorded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from real_code import COUNTS, PLACES, TABLE, differences, read_table, tried, write_table
from support import git, write_files

REMOVED = "from jax.ad_checkpoint import checkpoint\n\nf = checkpoint(abs)\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "theirs"
    write_files(folder, {"code.py": REMOVED, "odd.py": "jax.checkpoint(\n", "docs/a.txt": "text\n"})
    git(folder, "init", "-q")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "all")
    git(folder, "remote", "add", "origin", "https://example.org/someone/theirs.git")
    return folder


def test_compares_with_the_record(repository: Path, tmp_path: Path) -> None:
    name, version, record = tried(repository)
    assert not isinstance(record, str), record
    assert (name, version) == ("someone/theirs", git(repository, "rev-parse", "HEAD").strip())
    found = "RMT000=1 RMT103=1"
    counts = dict(zip(COUNTS, ("2", "1", "1", found, "RMT103=1", "RMT103=1"), strict=True))
    assert record == (counts, ["RMT000 odd.py:1", "RMT103 code.py:1"])
    other = ({**counts, "sites": "4"}, ["RMT000 gone.py:7", *record[1][1:]])
    assert list(differences(other, record)) == [
        "sites: 4 recorded, 1 found",
        "  + RMT000 odd.py:1",
        "  - RMT000 gone.py:7",
    ]
    files = tmp_path / "table.tsv", tmp_path / "places.tsv"
    write_table({(name, version): record}, *files)
    assert read_table(*files) == {(name, version): record}


def test_the_table_is_written_as_it_is(tmp_path: Path) -> None:
    files = tmp_path / "table.tsv", tmp_path / "places.tsv"
    write_table(read_table(), *files)
    assert [file.read_text() for file in files] == [TABLE.read_text(), PLACES.read_text()]


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("raise ValueError", "ended with 1: Traceback"),
        ("raise SystemExit(2)", "ended with 2"),
        ("open('new', 'w'); print('{\"findings\": [], \"sites\": []}')", "--diff writes new"),
    ],
)
def test_violations_are_named(script: str, problem: str, repository: Path) -> None:
    _, _, result = tried(repository, (sys.executable, "-c", script))
    assert isinstance(result, str)
    assert problem in result
