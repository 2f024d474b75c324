"""`[tool.remat-migrate]`: reading, precedence, and error messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from remat_migrate.errors import SettingsError
from remat_migrate.settings import Options, Settings, load_settings
from remat_migrate.settings.settings import Globs, PerFileIgnore, Wrapper


def load(folder: Path, text: str) -> Settings:
    (folder / "pyproject.toml").write_text(text)
    return load_settings(folder, folder)


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "env/lib/python3.11/site-packages").mkdir(parents=True)
    settings = load(
        tmp_path,
        """
        [tool.remat-migrate]
        select = ["RMT1", "rmt001"]
        extend-select = ["RMT206"]
        ignore = ["RMT104"]
        exclude = ["vendored/"]
        jax-version = "0.10.2"
        max-file-size = 3
        search-path = ["stubs", "env"]
        [tool.remat-migrate.per-file-ignores]
        "tests/**" = ["RMT101"]
        [tool.remat-migrate.wrappers]
        "mypkg.maybe_remat" = "jax.checkpoint"
        "mypkg.module_remat" = "flax.linen.remat"
        [tool.remat-migrate.scans]
        "mypkg.scan" = "jax.lax.scan"
        [tool.remat-migrate.verify]
        cases = "cases.py"
        tolerance = 1e-6
        [tool.remat-migrate.measure]
        x64 = true
        """,
    )
    assert settings == Settings(
        root=tmp_path,
        config=tmp_path / "pyproject.toml",
        select=("RMT1", "RMT001"),
        extend_select=("RMT206",),
        ignore=("RMT104",),
        per_file_ignores=(PerFileIgnore(tmp_path, "tests/**", ("RMT101",)),),
        exclude=Globs(tmp_path, ("vendored/",)),
        jax_version=(0, 10, 2),
        max_file_size=3,
        search_path=(
            tmp_path / "stubs",
            tmp_path / "env",
            tmp_path / "env/lib/python3.11/site-packages",
        ),
        wrappers=(
            Wrapper("mypkg.maybe_remat", "jax.checkpoint"),
            Wrapper("mypkg.module_remat", "flax.linen.remat"),
        ),
        scans=(Wrapper("mypkg.scan", "jax.lax.scan"),),
        verify={"cases": str(tmp_path / "cases.py"), "tolerance": 1e-6},
        measure={"x64": True},
    )


def test_the_nearest_file_with_the_table_wins(tmp_path: Path) -> None:
    inner = tmp_path / "packages" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.remat-migrate]\nmax-file-size = 2\n")
    (inner / "pyproject.toml").write_text("[project]\nname = 'inner'\n")
    assert load_settings(inner, inner / "model.py").max_file_size == 2
    assert load_settings(inner, inner / "model.py").base == tmp_path
    (inner / "pyproject.toml").write_text("[tool.remat-migrate]\nmax-file-size = 5\n")
    assert load_settings(inner, inner / "model.py").max_file_size == 5


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("ignore = [1]", ["tool.remat-migrate.ignore", "a string", "an integer 1"]),
        ("jax-version = 0.10", ["tool.remat-migrate.jax-version", "version", "a number 0.1"]),
        ('per-file-ignores = ["a"]', ["tool.remat-migrate.per-file-ignores", "a table", "array"]),
        (
            'per-file-ignores = {"a.py" = "RMT1"}',
            ["tool.remat-migrate.per-file-ignores.a.py", "an array"],
        ),
        ("wrappers = 1", ["tool.remat-migrate.wrappers", "a table", "an integer 1"]),
        (
            'wrappers = {a.b = "jax.checkpoint"}',
            ["tool.remat-migrate.wrappers.a", "names with dots need quotes"],
        ),
        ('wrappers = {"a b" = "jax.checkpoint"}', ["wrappers: the name 'a b' does not match"]),
        ("max-file-size = ", ["not valid TOML", "line 2"]),
    ],
)
def test_errors_name_file_key_and_problem(tmp_path: Path, body: str, words: list[str]) -> None:
    with pytest.raises(SettingsError) as error:
        load(tmp_path, f"[tool.remat-migrate]\n{body}\n")
    for word in [str(tmp_path / "pyproject.toml"), *words]:
        assert word in str(error.value)


def test_the_table_must_be_a_table(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"tool\.remat-migrate: expected a table"):
        load(tmp_path, "[tool]\nremat-migrate = 1\n")


def test_an_invalid_version_on_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match=r"command line: .*jax-version: expected .*, got .* '1'"
    ):
        load_settings(tmp_path, tmp_path, Options(jax_version="1"))


HUGE = {
    'search-path = ["~nobody-has-this-name/x"]': "search-path.*home",
    'baseline = "\\u0000"': "a string has a NUL character",
    'baseline = "~nobody-has-this-name/x"': "baseline.*home",
    "ignore = [" + '"RMT1",' * 50_000 + "]": "are too large",
    f"max-file-size = 0x{'f' * 20_000}": "a number is not finite, or too large",
    f"fail-on = 0x{'f' * 20_000}": "a number is not finite, or too large",
    "verify = {timeout = nan}": "a number is not finite",
    f"{'a.' * 100_000}b = 1": "more than 300 dots",
    f"select = {'[' * 900}{']' * 900}": "nested too deeply",
    'jax-version = "0.' + "1" * 5_000 + '"': "are too large",
    'baseline = "' + "a" * 2_000_000 + '"': "larger than 1 MiB",
}


@pytest.mark.parametrize(("line", "message"), HUGE.items(), ids=range(len(HUGE)))
def test_settings_that_would_hang_or_crash(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load(tmp_path, f"[tool.remat-migrate]\n{line}\n")
