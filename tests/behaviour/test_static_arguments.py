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
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
TARGETS = [f"{name}:main" for name in NAMES]
SELECT = ("--select", "RMT2")


@pytest.fixture(scope="module")
def fixed(tmp_path_factory, remat_migrate):
    folder = tmp_path_factory.mktemp("static") / "static"
    shutil.copytree(PROGRAMS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    remat_migrate(folder, "--fix", *SELECT, ".")
    return folder


@pytest.fixture(scope="module")
def expected(run_programs):
    return run_programs(PROGRAMS, *TARGETS, plain=True)


@pytest.fixture(scope="module")
def today(run_programs):
    return run_programs(PROGRAMS, *TARGETS)


@pytest.fixture(scope="module")
def actual(fixed, run_programs):
    return run_programs(fixed, *TARGETS)


@pytest.mark.parametrize("name", NAMES)
def test_same_values_and_gradients(name, expected, actual, today, assert_equal_arrays):
    before, after = expected[f"{name}:main"], actual[f"{name}:main"]
    assert isinstance(today[f"{name}:main"], str), "it runs as it is: no test of a fix"
    assert not isinstance(before, str), before
    assert not isinstance(after, str), after
    assert_equal_arrays(before, after, 1e-6)


def test_fix_is_complete_and_idempotent(fixed, remat_migrate):
    assert remat_migrate(fixed, *SELECT, ".").returncode == 0
    before = {path: path.read_bytes() for path in fixed.glob("*.py")}
    remat_migrate(fixed, "--fix", *SELECT, ".")
    assert {path: path.read_bytes() for path in fixed.glob("*.py")} == before
