"""Settings per directory, and the options that override them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import cli, write_files

CODE = """\
import jax
from jax.ad_checkpoint import checkpoint

f = jax.checkpoint(abs, concrete=False)
"""
TABLE = "[tool.remat-migrate]\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of three packages, two with their own settings."""
    write_files(
        tmp_path,
        {
            "pyproject.toml": TABLE + 'select = ["RMT103"]\nexclude = ["skipped/"]\n',
            "a/pyproject.toml": TABLE
            + 'select = ["RMT103"]\nextend-select = ["RMT101"]\nexclude = ["skipped/"]\n',
            "b/pyproject.toml": TABLE + 'exclude = ["vendored/"]\njax-version = "0.8.2"\n',
            "c/pyproject.toml": '[project]\nname = "c"\n',
            "skipped/pyproject.toml": TABLE,
            **{
                f"{name}/m.py": CODE
                for name in ("a", "b", "c", "b/vendored", "a/skipped", "skipped")
            },
        },
    )
    return tmp_path


def reported(folder: Path, *arguments: str) -> list[str]:
    """The places and codes that a run reports."""
    ran = cli(folder, "--output-format", "concise", *arguments)
    assert ran.code < 2, ran.err
    lines = [line.split(" ")[:2] for line in ran.out.splitlines() if ": RMT" in line]
    return [f"{place.partition(':')[0]} {code}" for place, code in lines]


def test_each_file_has_its_nearest_settings(repository: Path) -> None:
    found = reported(repository, ".")
    assert found == [
        "a/m.py RMT103",
        "a/m.py RMT101",
        "b/m.py RMT103",
        "b/m.py RMT101",
        "c/m.py RMT103",
    ]
    # The same from a folder with its own settings, and for single files as a hook passes them.
    assert reported(repository / "a") == ["m.py RMT103", "m.py RMT101"]
    assert reported(repository, "c/m.py", "a/m.py") == [found[0], found[1], found[4]]
    ran = cli(repository, "b", "c")
    assert "removed in jax 0.10" in ran.out
    assert "deprecated since jax 0.8.2" in ran.out


def test_fixes_follow_the_settings_of_each_file(repository: Path) -> None:
    assert cli(repository, "--fix", ".").code == 0
    assert "concrete" not in (repository / "a/m.py").read_text()
    assert "concrete=False" in (repository / "c/m.py").read_text()
    assert (repository / "skipped/m.py").read_text() == CODE


def test_options_take_precedence_over_all_files(repository: Path) -> None:
    only = reported(repository, ".", "--config", 'select = ["RMT101"]')
    assert only == ["a/m.py RMT101", "b/m.py RMT101", "c/m.py RMT101"]
    assert reported(repository, ".", "--config", 'select=["RMT101"]', "--select", "RMT103") == [
        f"{name}/m.py RMT103" for name in "abc"
    ]
    assert "b/vendored/m.py RMT101" in reported(repository, ".", "--exclude", "a,c")


def test_a_named_file_replaces_all_others(repository: Path) -> None:
    (repository / "strict.toml").write_text('select = ["RMT101"]\nexclude = ["/a", "/skipped"]\n')
    found = [f"{name}/m.py RMT101" for name in ("b", "b/vendored", "c")]
    assert reported(repository, ".", "--config", "strict.toml") == found
    # Its patterns are relative to the current folder.
    assert reported(repository / "c", ".", "--config", "../strict.toml") == ["m.py RMT101"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "sele"], "'sele' is neither a .toml file nor a TOML pair KEY=VALUE"),
        (["--config", "none.toml"], "none.toml: no such file"),
        (["--config", "fail-on=note"], "quote strings: --config 'fail-on=\"note\"'"),
        (["--config", "selct=[]"], "unknown key tool.remat-migrate.selct; did you mean select?"),
        (
            ["--config", "a/pyproject.toml", "--config", "b/pyproject.toml"],
            "only one settings file",
        ),
    ],
)
def test_wrong_overrides(repository: Path, arguments: list[str], message: str) -> None:
    ran = cli(repository, *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_the_cache_notices_settings_of_any_folder(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REMAT_MIGRATE_NO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    assert reported(repository) == reported(repository)
    (repository / "c/pyproject.toml").write_text(TABLE + 'select = ["RMT101"]\n')
    assert reported(repository)[-1] == "c/m.py RMT101"
    (repository / "c/pyproject.toml").unlink()
    assert reported(repository)[-1] == "c/m.py RMT103"
