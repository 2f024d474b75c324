"""The fixes of the placement rules, applied to whole programs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "placement"
# The rewrites support these, but no rule reports them: a policy on a whole function is a documented
# idiom, and a public block without barriers may be meant for loops elsewhere.
NOT_REPORTED = {"merged_back"}


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("placement") / "programs"
    shutil.copytree(PROGRAMS / "before", folder)
    (folder / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    subprocess.run(
        [sys.executable, "-m", "remat_migrate", "--fix", "--unsafe-fixes", "."],
        cwd=folder,
        capture_output=True,
    )
    return folder


@pytest.mark.parametrize("name", sorted(p.stem for p in (PROGRAMS / "before").glob("*.py")))
def test_programs_are_fixed(name: str, fixed: Path) -> None:
    side = "before" if name in NOT_REPORTED else "after"
    assert (fixed / f"{name}.py").read_text() == (PROGRAMS / side / f"{name}.py").read_text()


def test_nothing_is_moved_without_unsafe_fixes(tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    shutil.copytree(PROGRAMS / "before", folder)
    (folder / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    before = {path: path.read_bytes() for path in folder.glob("*.py")}
    command = [sys.executable, "-m", "remat_migrate", "--fix", "."]
    assert subprocess.run(command, cwd=folder, capture_output=True).returncode == 0
    assert {path: path.read_bytes() for path in folder.glob("*.py")} == before
