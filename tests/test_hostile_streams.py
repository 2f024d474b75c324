"""Files without end, and streams and folders that are not there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import write_files

from remat_migrate.discovery import listing
from remat_migrate.errors import UsageError
from remat_migrate.text.regular_files import MAX_BYTES

OLD = "import jax\nf = jax.checkpoint(g, concrete=False)\n"
RUN = [sys.executable, "-m", "remat_migrate", "--no-cache"]
posix = pytest.mark.skipif(os.name != "posix", reason="needs pipes and descriptors")


def run(folder: Path, *arguments: str, shell: str = "") -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", f'exec "$@" {shell}', "sh", *RUN, *arguments]
    return subprocess.run(
        command, cwd=folder, check=False, capture_output=True, text=True, timeout=60
    )


def findings(path: Path) -> list[dict[str, str]]:
    ran = run(path if path.is_dir() else path.parent, "--output-format", "json", str(path))
    found: list[dict[str, str]] = json.loads(ran.stdout)["findings"]
    return found


def test_a_file_over_the_limit_is_a_finding_and_the_others_are_checked(tmp_path: Path) -> None:
    write_files(tmp_path, {"pyproject.toml": "", "a.py": OLD, "big.py": OLD, "big.ipynb": OLD})
    os.truncate(tmp_path / "big.py", 40 * 2**30)
    os.truncate(tmp_path / "big.ipynb", MAX_BYTES + 1)
    found = {(Path(one["path"]).name, one["code"]) for one in findings(tmp_path)}
    assert found >= {("big.py", "RMT000"), ("big.ipynb", "RMT000"), ("a.py", "RMT101")}
    alone = findings(tmp_path / "big.py")
    assert [one["code"] for one in alone] == ["RMT000"]
    assert "larger than 64 MB" in alone[0]["message"]


def test_settings_raise_and_lower_the_limit(tmp_path: Path) -> None:
    settings = "[tool.remat-migrate]\nmax-file-size = {}\n"
    write_files(tmp_path, {"pyproject.toml": settings.format(1), "a.py": OLD + "#" * 2**20})
    assert [one["code"] for one in findings(tmp_path / "a.py")] == ["RMT000"]
    write_files(tmp_path, {"pyproject.toml": settings.format(2)})
    assert "RMT101" in {one["code"] for one in findings(tmp_path / "a.py")}


@posix
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_neither_fixes_nor_exit_code(tmp_path: Path, closed: str) -> None:
    write_files(tmp_path, {"pyproject.toml": "", "a.py": OLD})
    assert run(tmp_path, ".", shell=closed).returncode == 1
    ran = run(tmp_path, "--fix", ".", shell=closed)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "concrete" not in (tmp_path / "a.py").read_text()


@posix
def test_a_folder_that_is_gone_ends_with_a_message(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'rmdir {gone}; exec "$@"'
    console = "from remat_migrate.cli.commands import main; main()"
    for program in (RUN, [sys.executable, "-c", console]):
        gone.mkdir(exist_ok=True)
        ran = subprocess.run(
            ["sh", "-c", script, "sh", *program, "."],
            cwd=gone,
            check=False,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 2
        assert ran.stderr.startswith("error: the current folder cannot be used")
        assert "Traceback" not in ran.stderr


@posix
@pytest.mark.parametrize("pipe", [".git/index", "inner/.gitignore"])
def test_git_that_waits_for_a_pipe_is_stopped(
    tmp_path: Path, pipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"a.py": OLD, "inner/b.py": OLD})
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / pipe).unlink(missing_ok=True)
    os.mkfifo(tmp_path / pipe)
    monkeypatch.setattr(listing, "_GIT_SECONDS", 0.5)
    with pytest.raises(UsageError, match=r"git .* took longer than 0\.5 s"):
        list(listing.list_files(tmp_path, lambda name: name.endswith(".py")))


def test_git_is_not_a_program_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = listing.git_program()
    assert found is not None
    fake = tmp_path / "bin" / Path(found).name
    fake.parent.mkdir()
    shutil.copy(sys.executable, fake)
    monkeypatch.chdir(tmp_path)
    inside = ["", ".", "bin", str(fake.parent)]
    monkeypatch.setenv("PATH", os.pathsep.join([*inside, str(Path(found).parent)]))
    assert listing.git_program() == found
    monkeypatch.chdir("/")  # as in a container
    assert listing.git_program() is not None


def test_numbers_with_thousands_of_digits_are_wrong_settings(tmp_path: Path) -> None:
    number = "9" * 5000
    text = f"[tool.remat-migrate]\nmax-file-size = {number}\n"
    write_files(tmp_path, {"pyproject.toml": text, "a.py": OLD})
    ran = run(tmp_path, ".")
    assert ran.returncode == 2
    assert "is not valid TOML" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("option", ["", "--stdin-filename", "--baseline", "--output-file"])
def test_paths_that_no_system_has(tmp_path: Path, option: str) -> None:
    long = "a" * 5000
    write_files(tmp_path, {"pyproject.toml": "", "a.py": OLD})
    ran = run(tmp_path, *([option, long, "-"] if option else [long]), shell="</dev/null")
    assert ran.returncode == 2
    assert "File name too long" in ran.stderr
    assert "Traceback" not in ran.stderr
