"""A journal for `undo` that came with somebody's repository: nothing is brought back from it that
is not a file of the project."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from pathlib import Path
from typing import Any

import pytest
from support import cli, read_files, write_files

BEFORE, NOW, EVIL = b"x = 1\n", b"x = 2\n", b"evil\n"


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def saved(path: object, data: bytes = EVIL, now: bytes = NOW, **more: Any) -> dict[str, Any]:
    """Return a file of an entry with the current content `now` and the old content `old`."""
    item = {"path": path, "old": packed(data), "new_sha256": hashlib.sha256(now).hexdigest()}
    return item | {"mode": 0o644, "group": 0} | more


def committed(folder: Path, *files: object, **more: object) -> Path:
    """Create a project whose journal has an entry for `files`."""
    entry = {"version": 1, "created": "2026-01-01T00:00:00+00:00", "files": files} | more
    write_files(
        folder,
        {
            "pyproject.toml": "",
            "m.py": NOW,
            "n.py": "import jax  # noqa: RMT999\n",
            ".remat_migrate/journal/000001-ab.json": json.dumps(entry),
        },
    )
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "outside.py").write_bytes(NOW)
    return tmp_path / "project"


def refused(project: Path, *words: str) -> None:
    """Check that `undo` changes nothing, and --fix only what it finds in the code."""
    before = read_files(project.parent)
    for command in (["undo"], ["undo", "--force"]):
        ran = cli(project, *command)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("error: ")
        assert all(word in ran.err for word in words)
        assert "Traceback" not in ran.err
        assert all(letter.isprintable() or letter == "\n" for letter in ran.err)
    assert read_files(project.parent) == before
    # The same entry as one that a killed run has left.
    folder = project / ".remat_migrate" / "journal"
    for file in folder.glob("*.json"):
        file.rename(folder / "000001-ab.open.json")
    assert cli(project, "--fix").code == 2
    assert read_files(project.parent) == before


@pytest.mark.parametrize(
    "path",
    ["../outside.py", "m.py/../../outside.py", "", ".", "..", "sub/../..", "//etc/passwd"],
)
def test_files_outside_the_project(project: Path, path: str) -> None:
    refused(committed(project, saved(path)), " is outside ")


def test_files_outside_the_project_by_absolute_path(project: Path) -> None:
    refused(committed(project, saved(str(project.parent / "outside.py"))), " is outside ")


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".git/hooks/pre-commit",
        ".GIT/config",
        "sub/.git/config",
        "sub/.git",
        ".venv/lib/python3.11/site-packages/click/__init__.py",
        "venv/bin/activate",
        "env311/bin/python",
        ".remat_migrate/.gitignore",
        "node_modules/x/index.js",
    ],
)
def test_files_that_other_tools_execute(project: Path, path: str) -> None:
    write_files(project, {path: NOW, "env311/pyvenv.cfg": ""})
    refused(committed(project, saved(path)), "is not part of the project")
    assert (project / path).read_bytes() == NOW


@pytest.mark.parametrize(
    "item",
    [
        saved("m.py", mode="0644"),
        saved("m.py", mode=1 << 40),
        saved("m.py", mode=-1),
        saved("m.py", group=None),
        saved(["m.py"]),
        saved("m\0.py"),
        saved("m.py", old="@@@"),
        saved("m.py", old=base64.b64encode(b"no zlib").decode()),
        saved("m.py", old=packed(EVIL)[:8]),
        {"path": "m.py"},
        "m.py",
        None,
        3,
    ],
)
def test_malformed_entries(project: Path, item: object) -> None:
    refused(committed(project, item), "damaged")


def test_decompression_bomb(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remat_migrate.engine.journal_entries._MAX_FILE_BYTES", 1_000_000)
    refused(committed(project, saved("m.py", bytes(2_000_000))), "too large")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{", "", "null", "[]", "NaN", '{"version": 1}', "\0", '"\\ud800"']
)
def test_files_that_are_not_entries(project: Path, text: str) -> None:
    committed(project)
    (project / ".remat_migrate/journal/000001-ab.json").write_text(text)
    refused(project)


def test_path_through_a_link(project: Path) -> None:
    """Links that lead out of the project are not followed."""
    (project / "sub").symlink_to(project.parent)
    (project / "far.py").symlink_to(project.parent / "outside.py")
    committed(project, saved("sub/outside.py"), saved("far.py"))
    for command in (["undo"], ["undo", "--force"]):
        ran = cli(project, *command)
        assert ran.code == 2
        assert ran.err.count("symbolic link") == 2
    assert (project.parent / "outside.py").read_bytes() == NOW


@pytest.mark.parametrize("name", [".remat_migrate", ".remat_migrate/journal"])
def test_journal_is_a_link(project: Path, name: str) -> None:
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    write_files(project, {"pyproject.toml": "", "n.py": "import jax  # noqa: RMT999\n"})
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).symlink_to(elsewhere)
    ran = cli(project, "--fix")
    assert ran.code == 2
    assert "is a symbolic link" in ran.err
    assert list(elsewhere.iterdir()) == []
    assert (project / "n.py").read_text() == "import jax  # noqa: RMT999\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_entry_is_a_pipe(project: Path) -> None:
    committed(project)
    entry = project / ".remat_migrate/journal/000001-ab.json"
    entry.unlink()
    os.mkfifo(entry)
    ran = cli(project, "undo")
    assert ran.code == 2
    assert "cannot read this journal entry" in ran.err


@pytest.mark.parametrize("name", ["lock", ".gitignore", "journal/000001-ab.json"])
def test_huge_sparse_files(project: Path, name: str) -> None:
    committed(project)
    with (project / ".remat_migrate" / name).open("w") as file:
        file.truncate(2**40)
    ran = cli(project, "undo")
    assert "Traceback" not in ran.err
    assert ("is larger than" in ran.err) is name.endswith(".json")


def test_special_permission_bits_are_dropped(project: Path) -> None:
    committed(project, saved("new.sh", mode=0o6755))
    assert cli(project, "undo", "--force").code == 0
    assert (project / "new.sh").stat().st_mode & 0o7777 == 0o755


def test_control_characters_in_the_time_are_escaped(project: Path) -> None:
    committed(project, saved("m.py", BEFORE), created="\x1b]0;evil\x07")
    ran = cli(project, "undo")
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert (project / "m.py").read_bytes() == BEFORE


def test_edited_files_are_kept(project: Path) -> None:
    """A file that --fix did not write is not restored."""
    committed(project, saved("m.py", EVIL, b"something else"))
    ran = cli(project, "undo")
    assert ran.code == 2
    assert "was edited since" in ran.err
    assert (project / "m.py").read_bytes() == NOW
