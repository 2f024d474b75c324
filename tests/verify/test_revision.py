"""Differences between a git revision or a folder and the working tree."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from support import git, write_files

from remat_migrate.errors import UsageError
from remat_migrate.verify.copies import revision
from remat_migrate.verify.copies.revision import Base, FileChange, find_base
from remat_migrate.verify.copies.workspace import make_workspace

LONG = "".join(f"line_{number} = {number}\n" for number in range(20))


def commit(folder: Path, files: Mapping[str, str | bytes] = {}) -> None:
    write_files(folder, files)
    git(folder, "add", "--all")
    git(folder, "commit", "-qm", "one")


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


def rebuilt(base: Base, folder: Path) -> dict[str, bytes]:
    """The project as the base has it."""
    return tree(make_workspace(base.root, folder, base.texts, base.new).folder)


BEFORE = {
    "changed.py": "x = 1\n",
    "same.py": "y = 1\n",
    "removed.py": "gone = 1\n",
    "pkg/__init__.py": "",
    "pkg/moved.py": LONG,
    "pkg/data.json": "{}",
    "schön/模 型.py": "z = 1\r\n",
    "swap_a.py": LONG.replace("line", "a"),
}


def migrate(root: Path) -> None:
    (root / "removed.py").unlink()
    (root / "pkg/moved.py").unlink()
    write_files(
        root,
        {
            "changed.py": "x = 2\n",
            "new.py": "n = 1\n",
            "pkg/inner/renamed.py": LONG.replace("line_3", "changed"),
            "pkg/data.json": "[]",
            "schön/模 型.py": "z = 2\r\n",
        },
    )


@pytest.mark.parametrize("state", ["working tree", "staged", "committed", "folder"])
def test_every_kind_of_change(root: Path, tmp_path: Path, state: str) -> None:
    commit(root, BEFORE)
    name = "HEAD"
    if state == "folder":
        shutil.copytree(root, tmp_path / "old", ignore=shutil.ignore_patterns(".git"))
        name = str(tmp_path / "old")
    before = tree(root)
    migrate(root)
    if state in ("staged", "committed"):
        git(root, "add", "--all")
    if state == "committed":
        git(root, "commit", "-qm", "two")
        name = "HEAD~1"
    after = tree(root)
    found = find_base(root, name)
    assert found.changes == tuple(
        FileChange(root / path, old, new)
        for path, old, new in [
            ("changed.py", b"x = 1\n", b"x = 2\n"),
            ("new.py", None, b"n = 1\n"),
            ("pkg/data.json", b"{}", b"[]"),
            ("pkg/inner/renamed.py", None, LONG.replace("line_3", "changed").encode()),
            ("pkg/moved.py", LONG.encode(), None),
            ("removed.py", b"gone = 1\n", None),
            ("schön/模 型.py", b"z = 1\r\n", b"z = 2\r\n"),
        ]
    )
    assert found.new == {root / "new.py", root / "pkg/inner/renamed.py"}
    assert found.notes == ()
    assert rebuilt(found, tmp_path / "copy") == before
    assert tree(root) == after


def test_only_requested_files_are_compared_but_all_are_rebuilt(root: Path, tmp_path: Path) -> None:
    commit(root, BEFORE)
    before = tree(root)
    migrate(root)
    found = find_base(root, "HEAD", [root / "pkg", root / "changed.py"])
    assert [change.path.relative_to(root).as_posix() for change in found.changes] == [
        "changed.py",
        "pkg/data.json",
        "pkg/inner/renamed.py",
        "pkg/moved.py",
    ]
    assert rebuilt(found, tmp_path / "copy") == before
    assert find_base(root, "HEAD", [root / "removed.py"]).changes == (
        FileChange(root / "removed.py", b"gone = 1\n", None),
    )
    assert find_base(root, "HEAD", [root / "same.py"]).changes == ()


def test_project_in_a_subfolder_of_the_repository(root: Path, tmp_path: Path) -> None:
    commit(root, {"one/pkg/a.py": "1", "one/b.py": "1", "two/c.py": "1"})
    write_files(root, {"one/pkg/a.py": "2", "two/c.py": "2", "two/new.py": "", "one/new.py": ""})
    found = find_base(root / "one", "HEAD")
    assert [c.path for c in found.changes] == [root / "one/new.py", root / "one/pkg/a.py"]
    assert rebuilt(found, tmp_path / "copy") == {"pkg/a.py": b"1", "b.py": b"1"}


def test_ignored_files_are_on_both_sides(root: Path, tmp_path: Path) -> None:
    commit(root, {"a.py": "1", ".gitignore": "gen/\n"})
    write_files(root, {"a.py": "2", "gen/x.py": "3"})
    found = find_base(root, "HEAD")
    assert [c.path.name for c in found.changes] == ["a.py"]
    assert rebuilt(found, tmp_path / "copy")["gen/x.py"] == b"3"


def test_links(root: Path, tmp_path: Path) -> None:
    commit(root, {"real.py": "1", "file.py": "1"})
    (root / "link.py").symlink_to("real.py")
    commit(root)
    (root / "link.py").unlink()
    (root / "file.py").unlink()
    (root / "file.py").symlink_to("real.py")
    write_files(root, {"link.py": "2"})
    found = find_base(root, "HEAD")
    assert [(c.path.name, c.before, c.after) for c in found.changes] == [
        ("file.py", b"1", None),
        ("link.py", None, b"2"),
    ]
    assert found.notes == (
        "link.py: was a symbolic link; both sides use the version in the working tree",
    )
    assert rebuilt(found, tmp_path / "copy")["file.py"] == b"1"


def test_large_files_are_not_compared(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revision, "BIG_FILE", 100)
    pointer = "version https://git-lfs.github.com/spec/v1\n"
    old = {"shrunk": "x" * 101, "grown": "x", "both": "x" * 101, "lfs": pointer, "a.py": "1"}
    commit(root, old)
    shutil.copytree(root, tmp_path / "old", ignore=shutil.ignore_patterns(".git", "lfs"))
    new = {"shrunk": "y", "grown": "y" * 101, "both": "y" * 102, "lfs": "data", "new": "z" * 101}
    write_files(root, {**new, "a.py": "2"})
    found = find_base(root, "HEAD")
    assert [c.path.name for c in found.changes] == ["a.py"]
    assert sorted(note.partition(":")[0] for note in found.notes) == sorted(new)
    assert tree(root) == {**rebuilt(found, tmp_path / "copy"), "a.py": b"2"}
    git(root, "rm", "-q", "--cached", "lfs")
    (root / "lfs").unlink()
    found = find_base(root, str(tmp_path / "old"))
    assert [c.path.name for c in found.changes] == ["a.py"]


class TestSubmodules:
    """Git submodules."""

    @pytest.fixture
    def library(self, root: Path, tmp_path: Path) -> Path:
        origin = tmp_path / "origin"
        origin.mkdir()
        git(origin, "init", "--quiet")
        commit(origin, {"lib.py": "1"})
        git(root, "submodule", "--quiet", "add", str(origin), "library")
        commit(root, {"a.py": "1"})
        return root / "library"

    def test_another_commit(self, root: Path, library: Path) -> None:
        commit(library, {"lib.py": "2", "new.py": "3"})
        found = find_base(root, "HEAD")
        assert found.changes == ()
        assert found.notes == (
            "library is a submodule; both sides use the version in the working tree",
        )


class TestFolder:
    """A folder as the base."""

    FILES = {"pkg/a.py": "1", "pkg/b.py": "1", "tests/t.py": "1", "pyproject.toml": ""}

    @pytest.fixture
    def project(self, tmp_path: Path) -> Path:
        write_files(tmp_path / "project", self.FILES)
        return tmp_path / "project"

    def test_within_the_project(self, project: Path, tmp_path: Path) -> None:
        shutil.copytree(project, tmp_path / "old")
        shutil.move(tmp_path / "old", project / "old")
        write_files(project, {"pkg/a.py": "2"})
        found = find_base(project, str(project / "old"))
        assert found.changes == (FileChange(project / "pkg/a.py", b"1", b"2"),)


class TestWrongUsage:
    """Each message says what to do."""

    def refused(self, root: Path, base: str) -> str:
        with pytest.raises(UsageError) as caught:
            find_base(root, base)
        return str(caught.value)

    def test_no_such_revision(self, root: Path) -> None:
        commit(root, {"a.py": ""})
        for name in ("mian", "--all", "0" * 40, "HEAD~7", "main:a.py", ""):
            said = self.refused(root, name)
            assert said.startswith(f"--base {name}: no such folder or git revision")
            assert "`git branch --all`" in said

    def test_a_shallow_clone(self, root: Path, tmp_path: Path) -> None:
        commit(root, {"a.py": "1"})
        commit(root, {"a.py": "2"})
        git(tmp_path, "clone", "--quiet", "--depth=1", root.as_uri(), "clone")
        assert "git fetch --unshallow" in self.refused(tmp_path / "clone", "HEAD~1")

    def test_no_repository(self, tmp_path: Path) -> None:
        write_files(tmp_path, {"a.py": ""})
        said = self.refused(tmp_path, "main")
        assert f"{tmp_path} is not in a git repository" in said
        assert "pass a folder" in said

    def test_no_git(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        commit(root, {"a.py": ""})
        monkeypatch.setenv("PATH", "/nowhere")
        assert "not installed" in self.refused(root, "main")

    def test_unrelated_folder(self, root: Path, tmp_path: Path) -> None:
        commit(root, {"a.py": ""})
        write_files(tmp_path / "other", {"b.py": "", "c.txt": ""})
        said = self.refused(root, str(tmp_path / "other"))
        assert "none of its Python files has a counterpart" in said

    def test_the_project_itself(self, root: Path) -> None:
        commit(root, {"a.py": ""})
        assert "contains the project itself" in self.refused(root, str(root))
        assert "contains the project itself" in self.refused(root, str(root.parent))

    def test_missing_blob(self, root: Path) -> None:
        commit(root, {"a.py": "some text"})
        commit(root, {"a.py": "other text"})
        blob = git(root, "rev-parse", "HEAD~1:a.py").strip()
        (root / ".git/objects" / blob[:2] / blob[2:]).unlink()
        assert "a.py: the repository lacks its old version" in self.refused(root, "HEAD~1")
