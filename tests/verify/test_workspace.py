"""Copies of a project, in which code runs without writing to the project."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import git, read_files, write_files

from remat_migrate.errors import VerificationError
from remat_migrate.verify.copies import workspace
from remat_migrate.verify.copies.workspace import Workspace, make_workspace
from remat_migrate.verify.recording import recorders
from remat_migrate.verify.scratch import remove_folder


def write(folder: Path, names: Iterable[str]) -> None:
    write_files(folder, {name: name for name in names})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--quiet")
    return folder


def copied(root: Path, **options: object) -> Workspace:
    return make_workspace(root, root.parent / "copy", **{"texts": {}, **options})  # type: ignore[arg-type]


def contents(folder: Path) -> dict[str, str]:
    """Every entry below a folder: `copy`, `folder`, or where a link leads."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = "copy"
    return found


def test_files_are_copied_and_ignored_files_linked(root: Path) -> None:
    write(root, ["a.py", "pkg/b.py", "pkg/data.json", "data/x.bin", "data/deep/y.bin", "pkg/c.so"])
    write(root, [".venv/pyvenv.cfg", ".venv/bin/pytest", "build/lib/z.py"])
    dropped = (".pytest_cache", "__pycache__", "node_modules", ".tox", ".remat_migrate")
    write(root, [f"{name}/x" for name in dropped])
    write(root, ["pkg/__pycache__/b.pyc"])
    (root / ".gitignore").write_text("data/\n*.so\n.venv\n")
    found = copied(root)
    assert contents(found.folder) == {
        ".gitignore": "copy",
        ".venv": str(root / ".venv"),
        "a.py": "copy",
        "build/lib": str(root / "build/lib"),
        "data/deep": str(root / "data/deep"),
        "data/x.bin": str(root / "data/x.bin"),
        "pkg/b.py": "copy",
        "pkg/c.so": str(root / "pkg/c.so"),
        "pkg/data.json": "copy",
    }
    assert (found.folder / "pkg/b.py").read_text() == "pkg/b.py"
    assert found.notes == ()


def test_writes_to_the_copy_do_not_reach_the_project(root: Path) -> None:
    write(root, ["a.py", "out/old.txt"])
    (root / ".gitignore").write_text("out/\n")
    before = contents(root)
    found = copied(root)
    (found.folder / "a.py").write_text("changed")
    (found.folder / "out/new.txt").write_text("a result")
    (found.folder / "a.py").chmod(0o600)
    assert (root / "a.py").read_text() == "a.py"
    assert contents(root) == before


def test_texts_and_removed_files(root: Path) -> None:
    write(root, ["a.py", "b.py", "gen/c.py", "gen/d.py", "new/e.py", "run.sh"])
    (root / "run.sh").chmod(0o755)
    (root / ".gitignore").write_text("gen/\n")
    texts = {
        root / "a.py": b"after\r\n",
        root / "gen/c.py": b"ignored, and changed",
        root / "old/gone.py": b"once there",
        Path("run.sh"): b"#!/bin/sh",
    }
    found = copied(root, texts=texts, removed=[root / "new/e.py", root / "b.py"])
    assert (found.folder / "a.py").read_bytes() == b"after\r\n"
    assert contents(found.folder) == {
        ".gitignore": "copy",
        "a.py": "copy",
        "gen/c.py": "copy",
        "gen/d.py": str(root / "gen/d.py"),
        "old/gone.py": "copy",
        "run.sh": "copy",
    }
    assert os.access(found.folder / "run.sh", os.X_OK)
    assert (root / "a.py").read_text() == "a.py"
    assert not (root / "old").exists()
    # An empty folder would be a package.
    assert not (found.folder / "new").exists()


def test_file_replaced_by_a_folder_and_vice_versa(root: Path) -> None:
    write(root, ["model/__init__.py", "config"])
    texts = {root / "model": b"a script", root / "config/base.py": b"x = 1"}
    removed = [root / "model/__init__.py", root / "config"]
    found = copied(root, texts=texts, removed=removed)
    assert contents(found.folder) == {"config/base.py": "copy", "model": "copy"}


def test_text_below_a_link(root: Path) -> None:
    write(root, ["real/a.py"])
    (root / "alias").symlink_to("real")
    found = copied(root, texts={root / "alias/a.py": b"after"})
    assert (found.folder / "real/a.py").read_bytes() == b"after"
    assert (found.folder / "alias").is_symlink()
    # The link is new: in the old tree it was a folder.
    remove_folder(found.folder)
    found = copied(root, texts={root / "alias/a.py": b"before"}, removed=[root / "alias"])
    assert not (found.folder / "alias").is_symlink()
    assert (found.folder / "alias/a.py").read_bytes() == b"before"
    assert (found.folder / "real/a.py").read_text() == "real/a.py"


def test_text_outside_of_the_project(root: Path) -> None:
    with pytest.raises(VerificationError, match="lies outside the project"):
        copied(root, texts={root.parent / "x.py": b""})


def test_links_lead_within_the_copy(root: Path) -> None:
    outside = root.parent / "outside"
    write(outside, ["far.txt"])
    write(root, ["pkg/a.py", "data/x"])
    links = {
        "near.py": "pkg/a.py",
        "pkg/up.py": "../pkg/a.py",
        "absolute.py": str(root / "pkg/a.py"),
        "folder": "pkg",
        "round.py": "../project/pkg/a.py",
        "far.txt": "../outside/far.txt",
        "far_absolute": str(outside),
        "broken": "nowhere",
        "loop": "loop",
        "chain.py": "near.py",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    copy = copied(root).folder
    found = contents(copy)
    assert found["far.txt"] == str(outside / "far.txt")
    assert found["far_absolute"] == str(outside)
    assert found["broken"] == str(copy / "nowhere")
    for name in ("near.py", "pkg/up.py", "absolute.py", "round.py", "chain.py", "folder/a.py"):
        assert os.path.realpath(copy / name) == str(copy / "pkg/a.py")
    assert (copy / "far.txt").read_text() == "far.txt"


def test_a_project_named_through_a_link(root: Path) -> None:
    write(root, ["a.py"])
    (root / "self.py").symlink_to(root.parent / "alias" / "a.py")
    (root.parent / "alias").symlink_to(root)
    found = copied(root.parent / "alias", texts={root.parent / "alias/a.py": b"after"})
    assert found.root == root
    assert (found.folder / "a.py").read_bytes() == b"after"
    assert os.path.realpath(found.folder / "self.py") == str(found.folder / "a.py")


def test_large_files_are_linked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, ["a.py", "big.bin"])
    monkeypatch.setattr(workspace, "BIG_FILE", 10)
    (root / "big.bin").write_text("x" * 11)
    assert contents(copied(root).folder)["big.bin"] == str(root / "big.bin")


def test_an_ignored_folder_of_many_files_is_one_link(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, ["data/a", "data/b", "data/c"])
    (root / ".gitignore").write_text("data/\n")
    monkeypatch.setattr(workspace, "_MOST_LINKS", 2)
    assert contents(copied(root).folder)["data"] == str(root / "data")


def test_copy_within_the_project(root: Path) -> None:
    write(root, ["a.py"])
    (root / ".gitignore").write_text(".cache/\n")
    for place in (".cache/deep/copy", "copy"):
        found = make_workspace(root, root / place, {})
        assert (found.folder / "a.py").is_file()
        assert not (found.folder / place).exists()
        shutil.rmtree(root / place)


def test_nested_repository_and_submodule(root: Path) -> None:
    write(root, ["a.py"])
    for name in ("nested", "vendored"):
        (root / name).mkdir()
        git(root / name, "init", "--quiet")
        write(root / name, ["x.py", "out/y"])
        (root / name / ".gitignore").write_text("out/\n")
        git(root / name, "add", "--all")
        git(root / name, "commit", "-qm", "one")
    git(root, "add", "vendored")
    found = contents(copied(root).folder)
    for name in ("nested", "vendored"):
        assert found[f"{name}/x.py"] == "copy"
        assert found[f"{name}/out/y"] == str(root / name / "out/y")
    assert not any(".git/" in name for name in found)


class TestRemoval:
    """Copies are removed without following links."""

    def test_targets_of_links_are_kept(self, root: Path) -> None:
        write(root, ["a.py", "data/x", "data/deep/y"])
        (root / ".gitignore").write_text("data/\n")
        (root / "data").chmod(0o755)
        before = contents(root)
        found = copied(root)
        (found.folder / "whole").symlink_to(root)
        remove_folder(found.folder)
        assert not found.folder.exists()
        assert contents(root) == before

    def test_read_only_folders_are_removed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(tmp_path, ["copy/a/b/c", "kept/d"])
        (tmp_path / "copy/a/link").symlink_to(tmp_path / "kept")
        (tmp_path / "kept").chmod(0o500)
        locked = [tmp_path / "copy/a/b", tmp_path / "copy/a"]
        for folder in locked:
            folder.chmod(0o000 if os.geteuid() else 0o500)
        real = shutil.rmtree

        def rmtree(folder: Path) -> None:
            # The superuser is not kept out by permissions.
            if any(path.stat().st_mode & 0o700 != 0o700 for path in reversed(locked)):
                raise PermissionError(13, "Permission denied", str(folder))
            real(folder)

        monkeypatch.setattr(shutil, "rmtree", rmtree)
        remove_folder(tmp_path / "copy")
        assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o500
        assert contents(tmp_path) == {"kept/d": "copy"}
        (tmp_path / "kept").chmod(0o700)


def test_recorders_do_not_write_through_links(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too large to copy is linked."""
    monkeypatch.setattr(workspace, "BIG_FILE", 1)
    write_files(root, {"a.py": "def f(x): ...\n", "z/b.py": "def g(x): ...\n"})
    before = read_files(root)
    copy = copied(root)
    sides: Any = SimpleNamespace(old=copy, relative=lambda path: path.relative_to(root).as_posix())
    units: Any = [
        SimpleNamespace(path=root / "a.py", qualname="f"),
        SimpleNamespace(path=root / "z/b.py", qualname="g"),
    ]
    with recorders(sides, units):
        assert read_files(root) == before
        assert (copy.folder / "z/b.py").read_text() == "def g(x): ...\n"
