"""Repositories whose git data names files elsewhere, never ends, or multiplies."""

from __future__ import annotations

import hashlib
import shutil
import struct
import sys
from pathlib import Path

import pytest
from support import cli, git, read_files, write_files

from remat_migrate.discovery import listing

WRONG = "import jax  # noqa: RMT999\n"
FILE, REPOSITORY = 0o100644, 0o160000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "project"
    write_files(root, {"pyproject.toml": "", "src/old.py": WRONG})
    write_files(root.parent, {"outside/old.py": WRONG})
    git(root, "init", "-q")
    return root


def write_index(project: Path, names: list[str], mode: int = FILE) -> None:
    """Write an index with names that git itself would not add."""
    data = b"DIRC" + struct.pack(">II", 2, len(names))
    for name in sorted(map(str.encode, names)):
        entry = struct.pack(">6I", *[0] * 6) + struct.pack(">4I", mode, 0, 0, 0)
        entry += b"\x11" * 20 + struct.pack(">H", len(name)) + name
        data += entry + bytes(8 - len(entry) % 8)
    (project / ".git/index").write_bytes(data + hashlib.sha1(data).digest())


def listed(project: Path) -> list[str]:
    found = listing.list_files(project, lambda name: name.endswith(".py"))
    return [path.relative_to(project).as_posix() for path in found]


def test_index_with_names_outside_the_project(project: Path) -> None:
    outside = project.parent / "outside"
    up = ["..", "../", "../outside/old.py", "src/../../outside/old.py", f"{outside}/old.py"]
    write_index(project, ["src/old.py", *up])
    assert all(name in git(project, "ls-files").splitlines() for name in up)
    assert listed(project) == ["src/old.py"]
    assert cli(project, "--fix").code == 0
    assert read_files(outside) == {"old.py": WRONG.encode()}


@pytest.mark.parametrize(
    "name",
    [
        "src",
    ],
)
def test_tracked_folder_that_was_replaced_by_a_link(project: Path, name: str) -> None:
    write_files(project, {"src/inner/old.py": WRONG})
    git(project, "add", ".")
    shutil.rmtree(project / name)
    (project / name).symlink_to(project.parent / "outside")
    assert listed(project) == ([] if name == "src" else ["src/old.py"])
    assert cli(project, "--fix").code == 0
    assert read_files(project.parent / "outside") == {"old.py": WRONG.encode()}


def test_nested_repositories_with_one_index(project: Path) -> None:
    """Each folder is listed by all above it, and lists all below it."""
    names = ["/".join("x" * depth) for depth in range(1, 31)]
    for name in names:
        write_files(project, {f"{name}/.git": f"gitdir: {project}/.git", f"{name}/a.py": WRONG})
    write_index(project, names, REPOSITORY)
    assert sorted(listed(project)) == sorted(["src/old.py", *(f"{name}/a.py" for name in names)])


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_git_that_reads_without_end_is_stopped(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".git/commondir").symlink_to("/dev/zero")
    monkeypatch.setattr(listing, "_GIT_BYTES", 64 << 20)
    ran = listing.run_git(project, "ls-files")
    assert ran is not None
    assert ran.returncode != 0
    assert listed(project) == ["src/old.py"]
