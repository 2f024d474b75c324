"""Programs with wrong static arguments: values and gradients after the fixes of RMT2.

The modules in `fixtures/behaviour/static` have a function `main()` that returns values and
gradients, and fails before the fix. With a checkpoint that does nothing, it returns the expected
result.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "behaviour" / "static"
TARGETS = [f"{path.stem}:main" for path in sorted(PROGRAMS.glob("*.py"))]
SELECT = ("--select", "RMT2")


@pytest.fixture(scope="module")
def fixed(tmp_path_factory, remat_migrate):
    folder = tmp_path_factory.mktemp("static") / "static"
    shutil.copytree(PROGRAMS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    remat_migrate(folder, "--fix", *SELECT, ".")
    return folder


def test_same_values_and_gradients(fixed, run_programs, assert_equal_arrays):
    expected = run_programs(PROGRAMS, *TARGETS, plain=True)
    today = run_programs(PROGRAMS, *TARGETS)
    actual = run_programs(fixed, *TARGETS)
    for target, before in expected.items():
        after = actual[target]
        assert isinstance(today[target], str), f"{target} runs as it is: no test of a fix"
        assert not isinstance(before, str), f"{target}: {before}"
        assert not isinstance(after, str), f"{target}: {after}"
        assert_equal_arrays(before, after, 1e-6)


def test_fix_is_complete_and_idempotent(fixed, remat_migrate):
    assert remat_migrate(fixed, *SELECT, ".").returncode == 0
    before = {path: path.read_bytes() for path in fixed.glob("*.py")}
    remat_migrate(fixed, "--fix", *SELECT, ".")
    assert {path: path.read_bytes() for path in fixed.glob("*.py")} == before
