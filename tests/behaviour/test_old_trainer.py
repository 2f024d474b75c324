"""A whole project in the old API: fails under current JAX, and works after one `--fix`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2] / "fixtures" / "old_trainer"
TARGETS = ("trainer.train:main", "scripts.memory_probe:probe")

# float32; the training step is compiled with and without checkpoints. The results are equal bit by
# bit in jax 0.10 and differ by up to 3e-6 of the largest entry in jax 0.12.
RTOL = 1e-5


@pytest.fixture(scope="module")
def migrated(tmp_path_factory, remat_migrate):
    """Copy the project and run `remat-migrate --fix .` once; return the copy and the output."""
    folder = tmp_path_factory.mktemp("migrated") / "old_trainer"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder, remat_migrate(folder, "--fix", ".")


def test_original_code_fails(run_programs):
    for target, failure in run_programs(PROJECT, *TARGETS).items():
        assert isinstance(failure, str), f"{target} runs as it is"
        assert "Error" in failure


def test_no_findings_remain(migrated, remat_migrate):
    folder, fixing = migrated
    # Two misplaced checkpoints are advice.
    assert fixing.returncode == 0, fixing.stdout + fixing.stderr
    assert "Fixed" in fixing.stdout + fixing.stderr
    checking = remat_migrate(folder, "--select", "RMT0,RMT1", "--output-format", "json", ".")
    assert (checking.returncode, json.loads(checking.stdout)["findings"]) == (0, [])


@pytest.mark.slow
def test_values_are_unchanged(migrated, run_programs, assert_equal_arrays):
    folder, _ = migrated
    expected = run_programs(PROJECT, *TARGETS, plain=True)
    actual = run_programs(folder, *TARGETS)
    for target in TARGETS:
        assert not isinstance(expected[target], str), expected[target]
        assert not isinstance(actual[target], str), actual[target]
        assert_equal_arrays(expected[target], actual[target], RTOL)
    names = " ".join(expected["trainer.train:main"])
    assert "CheckpointHead_0" in names
    assert "block_1" in names


@pytest.mark.slow
def test_launcher_and_test_suite_pass(migrated, jax_environment):
    folder, _ = migrated
    launched = subprocess.run(
        ["bash", "scripts/train.sh"],
        cwd=folder,
        env=jax_environment,
        capture_output=True,
        text=True,
    )
    assert launched.returncode == 0, launched.stderr
    printed = re.findall(r"^(\w+)(?: \d\.\d{4}){3}$", launched.stdout, re.MULTILINE)
    assert printed == ["functions", "flax"]
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=folder,
        env={**jax_environment, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert tests.returncode == 0, tests.stdout


def test_flag_is_removed_but_prose_is_kept(migrated):
    folder, _ = migrated
    mentions = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and re.search("jax_new_checkpoint", path.read_text(), re.IGNORECASE)
    }
    assert mentions == {"README.md"}


def test_checkpoints_are_kept(migrated):
    """Removing every checkpoint would preserve the values, too."""
    folder, _ = migrated
    for name in ("trainer/blocks.py", "trainer/losses.py", "trainer/flax_model.py"):
        pattern = r"\b(?:jax\.checkpoint|nn\.remat)\b(?!_policies)"
        before = len(re.findall(pattern, (PROJECT / name).read_text()))
        assert len(re.findall(pattern, (folder / name).read_text())) == before > 0, name


def test_files_without_a_finding_are_untouched(migrated):
    folder, _ = migrated
    for name in ("README.md", "requirements.txt", "trainer/config.py", "trainer/data.py"):
        assert (folder / name).read_bytes() == (PROJECT / name).read_bytes(), name
    assert (folder / "scripts" / "train.sh").stat().st_mode & 0o111
