"""Links in a project, and folders that are exchanged for links during a run: nothing is written
outside of the project through them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support import cli, read_files, write_files

from remat_migrate.discovery.named_outputs import write_named
from remat_migrate.engine import undo, writing
from remat_migrate.engine.journal import Journal
from remat_migrate.text import folders
from remat_migrate.text.folders import Folder, open_folder

WRONG = "import jax  # noqa: RMT999\n"
FIXED = "import jax\n"
IN_THE_WAY = "is a symbolic link, and links in a project are not followed"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "project"
    write_files(root, {"pyproject.toml": "", "src/old.py": WRONG})
    write_files(outside(root), {"old.py": WRONG, "kept.txt": "kept\n"})
    return root


def outside(project: Path) -> Path:
    return project.parent / "outside"


@pytest.fixture(params=[True, False], ids=["handles", "paths"])
def handles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run a test with folder handles, and with checked paths as on Windows."""
    if not request.param:
        monkeypatch.setattr(folders, "_HAS_HANDLES", False)
    return bool(request.param)


def refused(project: Path, *command: str, naming: Path | None = None) -> None:
    """Check that a command writes nothing and names the link in the way."""
    before = read_files(outside(project))
    code = (project / "src").resolve()
    sources = read_files(code)
    ran = cli(project, *command)
    assert ran.code == 2, ran.err
    assert f"{naming or ''} {IN_THE_WAY}" in ran.err
    assert "Traceback" not in ran.err
    assert read_files(outside(project)) == before
    assert read_files(code) == sources


# -- folders that are exchanged for links


def exchange(folder: Path, target: Path) -> None:
    folder.rename(folder.with_name(folder.name + "-moved"))
    folder.symlink_to(target)


def before_first_call(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, act: Callable[[], None]
) -> None:
    """Act once, right before the first call of a function."""
    real, calls = getattr(owner, name), 0

    def call(*arguments: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 1:
            act()
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, call)


# Where a run is between listing the journal and its last write.
_MOMENTS: list[tuple[object, str]] = [
    (writing, "open_journal"),
    (Journal, "put"),
    (Folder, "create"),
    (Folder, "rename"),
    (Folder, "discard"),
    (Folder, "sync"),
]


@pytest.mark.usefixtures("handles")
@pytest.mark.parametrize(("owner", "function"), _MOMENTS, ids=[name for _, name in _MOMENTS])
def test_folder_is_exchanged_while_fixes_are_written(
    project: Path, monkeypatch: pytest.MonkeyPatch, owner: object, function: str
) -> None:
    before, folder = read_files(outside(project)), project / "src"
    before_first_call(monkeypatch, owner, function, lambda: exchange(folder, outside(project)))
    ran = cli(project, "--fix")
    assert folder.is_symlink()
    assert "Traceback" not in ran.err
    assert read_files(outside(project)) == before
    assert (project / "src-moved/old.py").read_text() in (WRONG, FIXED)


@pytest.mark.usefixtures("handles")
@pytest.mark.parametrize(
    ("owner", "function"),
    [
        (undo, "open_journal"),
        (Journal, "read"),
        (Folder, "change"),
        (Folder, "create"),
        (Folder, "rename"),
    ],
)
def test_folder_is_exchanged_during_undo(
    project: Path, monkeypatch: pytest.MonkeyPatch, owner: object, function: str
) -> None:
    cli(project, "--fix")
    write_files(outside(project), {"old.py": FIXED})
    before, folder = read_files(outside(project)), project / "src"
    before_first_call(monkeypatch, owner, function, lambda: exchange(folder, outside(project)))
    ran = cli(project, "undo")
    assert folder.is_symlink()
    assert "Traceback" not in ran.err
    assert read_files(outside(project)) == before


@pytest.mark.usefixtures("handles")
def test_source_folder_is_exchanged_after_reading(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file behind the link has the text that was read, so only its place tells it apart."""
    source, before = project / "src", read_files(outside(project))
    before_first_call(monkeypatch, writing, "_task", lambda: exchange(source, outside(project)))
    ran = cli(project, "--fix")
    assert f"src/old.py cannot be read: {source} {IN_THE_WAY}; no file was changed" in ran.err
    assert read_files(outside(project)) == before


# -- reports and other files that the user names

_NAMED = [
    ("--output-format", "sarif={}"),
    ("--output-file", "{}"),
    ("report", "--output-file", "{}"),
    ("--write-baseline", "{}"),
]


@pytest.mark.usefixtures("handles")
@pytest.mark.parametrize("command", _NAMED, ids=" ".join)
@pytest.mark.parametrize("target", ["kept.txt", "made.txt"])
def test_output_is_a_link(project: Path, command: tuple[str, ...], target: str) -> None:
    link = project / "named"
    link.symlink_to(outside(project) / target)
    for name in ("named", "src/../named", str(link)):
        arguments = [part.format(name) for part in command]
        ran = cli(project, *arguments)
        assert ran.code == 2
        assert f"{link} is a symbolic link" in ran.err or "cannot be accessed" in ran.err
    assert sorted(read_files(outside(project))) == ["kept.txt", "old.py"]
    assert (outside(project) / "kept.txt").read_text() == "kept\n"


@pytest.mark.usefixtures("handles")
@pytest.mark.parametrize("command", _NAMED, ids=" ".join)
def test_output_is_below_a_linked_folder(project: Path, command: tuple[str, ...]) -> None:
    (project / "docs").symlink_to(outside(project))
    arguments = [part.format("docs/kept.txt") for part in command]
    refused(project, *arguments, naming=project / "docs")


@pytest.mark.parametrize("command", _NAMED[:3], ids=" ".join)
def test_output_becomes_a_link(
    project: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also between the moment that the path is resolved and the moment that it is opened."""
    (project / "docs").mkdir()
    arguments = [part.format("docs/kept.txt") for part in command]
    named = "remat_migrate.discovery.named_outputs"
    real = folders.open_folder

    def late(*where: Path, **options: bool) -> object:
        if not (project / "docs").is_symlink():
            exchange(project / "docs", outside(project))
        return real(*where, **options)

    monkeypatch.setattr(f"{named}.open_folder", late)
    refused(project, *arguments, naming=project / "docs")


def test_output_through_a_link_of_the_user_to_a_link_of_the_project(project: Path) -> None:
    (project / "docs").symlink_to(outside(project))
    mine = project.parent / "mine"
    mine.symlink_to(project / "docs/kept.txt")
    refused(project, "--output-file", str(mine), naming=project / "docs")


def test_links_outside_the_project_are_followed(project: Path) -> None:
    mine = project.parent / "mine"
    mine.symlink_to(outside(project))
    (outside(project) / "latest").symlink_to("kept.txt")
    for name in ("kept.txt", "new.txt", "latest"):
        file = mine / name
        assert cli(project, "--output-format", f"json={file}").code == 1
        assert file.read_text().startswith("{")
        file.unlink()
        write_files(outside(project), {"kept.txt": ""})
    assert cli(project, "--write-baseline", str(mine / "base.json")).code == 0
    assert cli(project, "--baseline", str(outside(project) / "base.json")).code == 0


def test_failed_report_keeps_the_old_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project / "out.json"
    file.write_text("old")

    def full(handle: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    ran = cli(project, "--output-format", f"json={file}")
    monkeypatch.undo()
    assert (ran.code, file.read_text()) == (2, "old")
    assert "No space left on device" in ran.err
    assert not list(project.rglob("*.tmp"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_report_to_a_pipe(project: Path) -> None:
    pipe = project / "pipe"
    os.mkfifo(pipe)
    # The report of one small file fits in the pipe, so nobody has to read while it is written.
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        assert cli(project, "--output-format", f"json={pipe}").code == 1
        assert reader.read().startswith(b"{")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_report_to_a_pipe_of_the_project_that_nobody_reads(project: Path) -> None:
    os.mkfifo(project / "out.sarif")
    ran = cli(project, "--output-format", "sarif=out.sarif")
    assert ran.code == 2
    assert "out.sarif" in ran.err


def test_file_in_a_folder_that_is_not_writable(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is then written in place, unless another name of the file lies elsewhere."""

    def fail(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Folder, "create", fail)
    write_files(project, {"out.txt": "a longer text"})
    write_named(project / "out.txt", b"new")
    assert (project / "out.txt").read_bytes() == b"new"
    os.link(outside(project) / "kept.txt", project / "hard.txt")
    with pytest.raises(PermissionError):
        write_named(project / "hard.txt", b"new")
    assert (outside(project) / "kept.txt").read_text() == "kept\n"


def test_job_summary_is_a_link(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "summary.md").symlink_to(outside(project) / "kept.txt")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "summary.md"))
    ran = cli(project, "--output-format", "github")
    assert ran.code == 1
    assert IN_THE_WAY in ran.err
    assert (outside(project) / "kept.txt").read_text() == "kept\n"


# -- open folders


@pytest.mark.usefixtures("handles")
@pytest.mark.parametrize("path", ["..", "src/../..", "src/../../outside"])
def test_paths_out_of_a_project(project: Path, path: str) -> None:
    with pytest.raises(OSError, match="is outside"), open_folder(project / path, project):
        pass
    with pytest.raises(OSError, match="is outside"), open_folder(outside(project), project):
        pass
