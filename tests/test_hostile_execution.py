"""Nothing of a repository is run or imported, whatever it offers, unless that is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import cli, git, write_files

SITE = "import jax  # noqa: RMT999\n\nf = jax.checkpoint(g, concrete=True)\n"
TOUCH = "import pathlib; pathlib.Path({mark!r}).touch()\n"


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A file that is there when something of the project was run."""
    return tmp_path / "was-run"


@pytest.fixture
def project(tmp_path: Path, mark: Path) -> Path:
    """A project in which every name that might be imported leaves a mark."""
    folder = tmp_path / "project"
    names = (
        "m.py",
        "conftest.py",
        "setup.py",
        "sitecustomize.py",
        "click.py",
        "libcst.py",
        "pathspec.py",
        "ast.py",
        "json.py",
        "tomllib.py",
        "remat_migrate_rules/__init__.py",
        "evil_rules.py",
        "jax/__init__.py",
    )
    write_files(folder, dict.fromkeys(names, TOUCH.format(mark=str(mark)) + SITE))
    write_files(
        folder,
        {
            "pyproject.toml": RUNNING.format(mark=mark),
            "placed.py": PLACED,
            "evil.sh": f"#!/bin/sh\ntouch '{mark}'\n",
            "evil-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
            "evil-1.0.dist-info/entry_points.txt": "[remat_migrate.rules]\nevil = evil_rules\n",
            ".gitignore": "skipped.py\n",
        },
    )
    (folder / "evil.sh").chmod(0o755)
    return folder


# Settings that name everything that may be run: a command, cases, an interpreter, and a target.
RUNNING = """\
[tool.remat-migrate.verify]
command = "touch '{mark}'"
cases = "m.py"
python = "./evil.sh"
[tool.remat-migrate.measure]
target = "m:f"
args = "m:f"
"""
# Has an unsafe fix.
PLACED = """\
import jax

@jax.checkpoint
def loss(w, x):
    return (x @ w).sum()

step = jax.value_and_grad(loss)
"""
COMMANDS = (
    ["--statistics"],
    ["report", "--output-format", "html"],
)


def run_as_module(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "remat_migrate", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_project_is_not_imported(project: Path, mark: Path, arguments: list[str]) -> None:
    if arguments == ["undo"]:
        cli(project, "--fix")
    ran = cli(project, *arguments, stdin=SITE.encode())
    assert ran.code in (0, 1), ran
    assert not mark.exists()


def test_sweep_imports_nothing(project: Path, mark: Path) -> None:
    ran = cli(project.parent, "sweep", str(project), "--out", str(project.parent / "out"))
    assert ran.code in (0, 1), ran
    assert not mark.exists()


def test_measuring_on_request_imports_the_target(project: Path, mark: Path) -> None:
    """The settings of the other tests would run the code, if that were asked for."""
    (project / "pyproject.toml").write_text("[tool.remat-migrate.measure]\ntarget = 'm:f'\n")
    (project / "jax/__init__.py").unlink()
    cli(project, "report", "--measure")
    assert mark.exists()


@pytest.mark.parametrize("arguments", [["--version"], ["--fix"], ["rules"]], ids=" ".join)
def test_python_m_ignores_the_current_folder(
    project: Path, mark: Path, arguments: list[str]
) -> None:
    ran = run_as_module(project, *arguments)
    assert ran.returncode in (0, 1), ran.stderr
    assert not mark.exists()


def test_python_m_in_a_checkout_of_the_tool() -> None:
    ran = run_as_module(Path(__file__).parents[1], "--version")
    assert ran.returncode == 0, ran.stderr


def test_git_commands_configured_in_the_repository_do_not_run(project: Path, mark: Path) -> None:
    """Monitor, hooks, filters, drivers of differences and transports: none is run."""
    git(project, "init", "--quiet")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "-m", "one")
    script = project / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch '{mark}'\ncat\n")
    script.chmod(0o755)
    hooks = project / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "post-checkout", "pre-commit", "fsmonitor-watchman"):
        (hooks / name).symlink_to(script)
    (project / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    for key in (
        *("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass"),
        *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process"),
        *("diff.evil.textconv", "diff.evil.command", "diff.external", "merge.evil.driver"),
        *("credential.helper", "gpg.program", "uploadpack.packObjectsHook"),
        *("core.alternateRefsCommand", "alias.ls-files", "alias.rev-parse", "alias.check-ignore"),
    ):
        git(project, "config", key, f"!{script}" if key.startswith("alias") else str(script))
    git(project, "config", "core.hooksPath", str(hooks))
    git(project, "config", "filter.evil.required", "true")
    # Objects that are not there come, as it were, from a remote that is a command.
    git(project, "config", "remote.origin.url", f"ext::{script}")
    git(project, "config", "remote.origin.promisor", "true")
    git(project, "config", "remote.origin.partialclonefilter", "blob:none")
    git(project, "config", "protocol.ext.allow", "always")
    mark.unlink(missing_ok=True)
    (project / "m.py").touch()
    (project / ".gitignore").write_text("")
    for arguments in COMMANDS:
        assert cli(project, *arguments).code in (0, 1)
        assert not mark.exists(), arguments
    for base in ("HEAD", "0" * 39 + "1", "--upload-pack=evil.sh", f"ext::{script}"):
        ran = cli(project, "verify", "--base", base, "--python", sys.executable, "nothing")
        assert ran.code == 2
        assert not mark.exists(), base


def test_git_variables_and_gitfile_pointing_elsewhere(
    project: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = project.parent / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    git(other, "config", "core.fsmonitor", f"touch '{mark}'")
    (project / ".git").write_text(f"gitdir: {other / '.git'}\n")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"touch '{mark}'")
    ran = cli(project, ".", "--output-format", "json")
    assert ran.code == 1
    assert any(f["path"] == "m.py" for f in json.loads(ran.out)["findings"])
    assert not mark.exists()
