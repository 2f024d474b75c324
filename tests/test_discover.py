"""The files that a run checks and reads."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from support import cli, git, write_files

from remat_migrate.discovery.discover import Targets, context_files, discover
from remat_migrate.discovery.globs import matcher
from remat_migrate.discovery.roots import find_root
from remat_migrate.errors import SettingsError, UsageError
from remat_migrate.settings import NearestSettings, Options, Settings
from remat_migrate.settings.settings import Globs


def write(folder: Path, names: Iterable[str]) -> None:
    write_files(folder, dict.fromkeys(names, ""))


def discovered(paths: Sequence[Path], root: Path, exclude: tuple[str, ...] = ()) -> Targets:
    settings = Settings(root=root, exclude=Globs(root, exclude))
    # What the command line gives is not read from files.
    return discover(paths, NearestSettings(settings, Options(config=root / "settings.toml")))


def found(folder: Path, paths: Sequence[Path] = (), **settings: object) -> set[str]:
    targets = discovered(paths or [folder], folder, **settings)  # type: ignore[arg-type]
    return {p.relative_to(folder).as_posix() for p in (*targets.python, *targets.texts)}


@pytest.fixture(params=["plain folder", "git repository"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Create an empty project, with and without git; both must give the same files."""
    if request.param == "git repository":
        git(tmp_path, "init", "--quiet")
    return tmp_path


def test_third_party_folders_are_skipped(folder: Path) -> None:
    write(folder, ["a.py", "sub/c.py", "env/lib/python3.11/site-packages/jax/x.py"])
    skipped = [".venv", "venv", "node_modules", "__pycache__", "build", "dist", ".tox"]
    write(folder, [f"{name}/x.py" for name in skipped])
    assert found(folder) == {"a.py", "sub/c.py"}


def test_an_explicit_folder_is_listed_even_if_ignored(folder: Path) -> None:
    write(folder, ["build/gen/x.py", "venv/y.py"])
    (folder / ".gitignore").write_text("build/\nvenv/\n")
    assert found(folder, [folder / "build"]) == {"build/gen/x.py"}
    assert found(folder, [folder / "venv"]) == {"venv/y.py"}


def test_an_explicit_file_is_always_checked(folder: Path) -> None:
    write(folder, ["build/x.py", "notes.txt", "typed.pyi"])
    (folder / ".gitignore").write_text("build/\n")
    (folder / "launch").write_text("#!/usr/bin/env python3\n")
    (folder / "serve").write_text("#!/bin/sh\n")
    names = ["build/x.py", "notes.txt", "typed.pyi", "launch", "serve"]
    targets = discovered([folder / name for name in names], folder, ("build/", "*.txt"))
    assert {p.name for p in targets.python} == {"x.py", "typed.pyi", "launch"}
    assert {p.name for p in targets.texts} == {"notes.txt", "serve"}


def test_exclude(folder: Path) -> None:
    write(folder, ["a.py", "old/b.py", "old/new/c.py", "pkg/skip_me.py", "pkg/keep.py"])
    assert found(folder, exclude=("old/", "**/skip_*.py")) == {"a.py", "pkg/keep.py"}
    assert found(folder, exclude=("/old/*", "!/old/b.py")) == {
        "a.py",
        "old/b.py",
        "pkg/skip_me.py",
        "pkg/keep.py",
    }


def test_only_explicit_links_are_followed(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    write(outside, ["far.py"])
    write(folder, ["a.py", "sub/b.py"])
    (folder / "far.py").symlink_to(outside / "far.py")
    (folder / "far").symlink_to(outside)
    (folder / "sub" / "loop").symlink_to(folder)
    (folder / "self.py").symlink_to(folder / "self.py")
    (folder / "gone.py").symlink_to(folder / "nowhere.py")
    assert found(folder) == {"a.py", "sub/b.py"}
    named = discovered([folder / "far.py", folder / "far"], folder)
    assert named.python == (outside / "far.py",)


def test_every_missing_path_is_listed(tmp_path: Path) -> None:
    write(tmp_path, ["a.py"])
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    (tmp_path / "broken.py").symlink_to(tmp_path / "nowhere.py")
    paths = [tmp_path / name for name in ("x.py", "a.py", "y", "loop.py", "broken.py", "a.py/b")]
    with pytest.raises(UsageError) as error:
        discovered(paths, tmp_path)
    lines = str(error.value).splitlines()
    assert lines[0] == f"{tmp_path / 'x.py'}: no such file or folder"
    assert lines[1] == f"{tmp_path / 'y'}: no such file or folder"
    assert lines[2].startswith(f"{tmp_path / 'loop.py'}: ")
    assert lines[3].endswith("no such file or folder (a broken symbolic link)")
    assert lines[4].startswith(f"{tmp_path / 'a.py/b'}: ")
    assert len(lines) == 5


def test_special_files_are_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(UsageError, match="not a file or folder"):
        discovered([tmp_path / "pipe.py"], tmp_path)
    assert discovered([tmp_path], tmp_path).python == ()


def test_an_unreadable_folder_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, ["a.py", "secret/b.py"])
    real = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("secret"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert found(tmp_path) == {"a.py"}


def test_folders_nested_deeper_than_the_stack_of_python(tmp_path: Path) -> None:
    name = "/".join(["d"] * 300) + "/a.py"
    write(tmp_path, [name])
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 150)
    try:
        assert found(tmp_path) == {name}
    finally:
        sys.setrecursionlimit(usual)


def test_an_invalid_glob_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, ["a.py"])
    with pytest.raises(SettingsError, match="gitignore pattern"):
        found(tmp_path, exclude=("!",))


@pytest.mark.parametrize("pattern", ["*a" * 30 + "b", "**/a/" * 30 + "b"])
def test_patterns_with_many_stars_are_not_matched(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(SettingsError, match="has more than 3"):
        matcher((pattern,), tmp_path)
    assert matcher(("**/*a*/**/x*.py",), tmp_path)(tmp_path / "b/cad/d/xy.py")


class TestGit:
    """Cases that only exist in git repositories."""

    @pytest.fixture
    def repository(self, tmp_path: Path) -> Path:
        git(tmp_path, "init", "--quiet")
        return tmp_path

    def test_committed_build_scripts_are_source(self, repository: Path) -> None:
        write(repository, ["build/wheel.py", "node_modules/x.py"])
        git(repository, "add", "--all")
        write(repository, ["build/lib/copy.py"])
        assert found(repository) == {"build/wheel.py"}

    def test_a_file_deleted_but_not_yet_committed(self, repository: Path) -> None:
        write(repository, ["a.py", "b.py"])
        git(repository, "add", "--all")
        (repository / "b.py").unlink()
        assert found(repository) == {"a.py"}

    def test_nested_repositories_and_submodules(self, repository: Path) -> None:
        for name in ("nested", "vendored"):
            (repository / name).mkdir()
            git(repository / name, "init", "--quiet")
            write(repository / name, ["x.py", "out/y.py"])
            (repository / name / ".gitignore").write_text("out/\n")
            git(repository / name, "add", "--all")
            git(repository / name, "commit", "-qm", "one")
        git(repository, "add", "vendored")  # an entry as a submodule has it
        assert found(repository) == {"nested/x.py", "vendored/x.py"}

    def test_what_git_ignores_is_skipped(self, repository: Path) -> None:
        write(repository, ["a.py", "gen/b.py", "gen/kept.py", "sub/out/d.py", "sub/out/e.sh"])
        (repository / ".gitignore").write_text("gen/*\n!gen/kept.py\n")
        (repository / "sub" / ".gitignore").write_text("/out\n")
        assert found(repository) == {"a.py", "gen/kept.py"}

    def test_folders_are_walked_without_git(
        self, repository: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(repository, ["a.py", "build/b.py"])
        monkeypatch.setenv("PATH", "/nowhere")
        assert found(repository) == {"a.py"}


class TestRoot:
    """Finding the project root."""

    @pytest.mark.parametrize("marker", ["pyproject.toml", "setup.py", "setup.cfg", ".git"])
    def test_nearest_marker(self, tmp_path: Path, marker: str) -> None:
        write(tmp_path, [marker, "pkg/sub/a.py"])
        assert find_root([tmp_path / "pkg/sub/a.py"]) == tmp_path
        assert find_root([tmp_path / "pkg/sub"]) == tmp_path

    def test_outside_any_project_files_nearby_are_read(self, tmp_path: Path) -> None:
        write(tmp_path, ["x.py", "caller.py", "pkg/inner.py", ".venv/helper.py"])
        found = context_files(tmp_path, Targets((tmp_path / "x.py",), ()))
        assert {path.name for path in found} == {"x.py", "caller.py", "inner.py"}

    def test_outside_any_project_imports_are_followed(self, tmp_path: Path) -> None:
        inner = "def f(x, k):\n    return x if k else -x\n"
        use = (
            "import jax\nfrom pkg.inner import f\n\ny = jax.checkpoint(f, concrete=True)(1.0, 2)\n"
        )
        write_files(tmp_path, {"pkg/__init__.py": "", "pkg/inner.py": inner, "x.py": use})
        assert cli(tmp_path, "--fix", "x.py").code == 0
        assert "static_argnums=(1,))(1.0, 2)" in (tmp_path / "x.py").read_text()
