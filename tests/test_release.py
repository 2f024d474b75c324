"""The distributions and everything that publishes them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from datetime import date
from email import message_from_bytes
from itertools import pairwise
from pathlib import Path

import pytest
from support import git

from remat_migrate import __version__

ROOT = Path(__file__).parents[1]
SCRIPTS = Path(sys.executable).parent
WRONG = "import jax\n\nf = jax.checkpoint(lambda x: 2 * x, concrete=True)\n"
KINDS = ("Security", "Added", "Fixed", "Changed", "Deprecated", "Removed")
OFFLINE = re.compile(
    r"NewConnectionError|Temporary failure in name resolution|dns error|No route to host"
    r"|Connection refused|Network is unreachable|tcp connect error"
)


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a program of the test environment and return its output; skip without a network."""
    program = SCRIPTS / command[0]
    if not program.exists():
        pytest.skip(f"{command[0]} is not installed: pip install -e '.[ci]'")
    ran = subprocess.run(
        [program, *command[1:]],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode and OFFLINE.search(ran.stderr):
        pytest.skip(f"{command[0]} cannot reach the package index")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The files of the repository, of which this may be a copy without git's own."""
    empty = tmp_path_factory.mktemp("git")
    git(empty, "init", "-q")
    at = f"--git-dir={empty / '.git'}", f"--work-tree={ROOT}"
    return git(ROOT, *at, "ls-files", "--others", "--exclude-standard").splitlines()


@pytest.fixture(scope="module")
def built(tracked: Sequence[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    source = tmp_path_factory.mktemp("source")
    # A copy, because building leaves files behind.
    for name in tracked:
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    run("uv", "build", "--quiet", "--python", sys.executable, "--out-dir", folder, cwd=source)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    [path] = built.glob("*.whl")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder outside of the repository, with something to find."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "model.py").write_text(WRONG)
    return tmp_path / "project"


def check_output(printed: str) -> None:
    assert "model.py:3:37: RMT101" in printed
    assert "Found 1 finding in 1 file: 1 fixable." in printed


@pytest.mark.ecosystem
def test_source_distribution_has_every_file(built: Path, tracked: Sequence[str]) -> None:
    [path] = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    assert [name for name in tracked if name not in found and (ROOT / name).exists()] == []


@pytest.mark.ecosystem
def test_wheel_has_the_packages_and_nothing_else(wheel: Path, tracked: Sequence[str]) -> None:
    info = f"remat_migrate-{__version__}.dist-info/"
    folders = {"remat_migrate/": "remat_migrate/", "rules/": "remat_migrate_rules/"}
    expected = {
        inside + name.removeprefix(folder)
        for folder, inside in folders.items()
        for name in tracked
        if name.startswith(folder)
    }
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.startswith(info)}
        metadata = message_from_bytes(archive.read(f"{info}METADATA"))
    assert names == expected
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0"
    urls = [value.partition(", ")[0] for value in metadata.get_all("Project-URL", [])]
    assert urls == ["Homepage", "Documentation", "Repository", "Changelog", "Issues"]
    assert "Programming Language :: Python :: 3.14" in metadata.get_all("Classifier", [])


@pytest.mark.ecosystem
def test_uvx_runs_the_wheel(wheel: Path, project: Path) -> None:
    tool = ("uv", "tool", "run", "--python", sys.executable, "--from", wheel, "remat-migrate")
    check_output(run(*tool, "--exit-zero", cwd=project))
    assert run(*tool, "--version", cwd=project).split()[-1] == __version__


def test_changelog() -> None:
    """Keep a Changelog: known headings, dated releases, the newest first, a link for each."""
    text = (ROOT / "CHANGELOG.md").read_text()
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert heads[0] == "[Unreleased]"
    releases = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (.+)", head) for head in heads[1:]]
    assert all(releases), heads
    versions = [release[1] for release in releases if release]
    days = [date.fromisoformat(release[2]) for release in releases if release]
    assert versions[0] == __version__
    assert all(later >= earlier for later, earlier in pairwise(days))
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= set(KINDS)
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", part, re.MULTILINE)
        assert len(kinds) == len(set(kinds)), part[:40]
    assert re.findall(r"^\[(.+)\]: https://", text, re.MULTILINE) == ["Unreleased", *versions]


def test_versions_agree() -> None:
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text()
    assert f'version: "{__version__}"' in recipe
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    listed = re.search(r"^  run:\n((?:    - .*\n)+)", recipe, re.MULTILINE)
    assert listed is not None
    required = [line.removeprefix("    - ") for line in listed[1].splitlines()]
    assert required[1:] == [one.replace(">=", " >=") for one in dependencies]


@pytest.mark.ecosystem
def test_workflows_and_actions_are_secure() -> None:
    """zizmor finds nothing, not even what only its pedantic persona reports."""
    examples = sorted((ROOT / "examples").glob("github-*.yml"))
    paths = (ROOT / ".github", ROOT / "action.yml", *examples)
    run("zizmor", "--offline", "--quiet", "--pedantic", "--no-config", *paths, cwd=ROOT)
    for path in (*(ROOT / ".github" / "workflows").iterdir(), ROOT / "action.yml", *examples):
        for used in re.findall(r"uses: (.*)", path.read_text()):
            if used.startswith("remat-migrate/"):
                assert f"@v{__version__} " in used, (path.name, used)
                continue
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used), (path.name, used)
