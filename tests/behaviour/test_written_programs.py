"""Programs in the style of training code: migrated, run before and after, and compared.

Each folder of `fixtures/programs` and `fixtures/training` is one project: a package whose module
`run` has a function `main()` that returns a pytree of arrays: values, gradients, parameters. The
expected result is that of the old code with every checkpoint replaced by the plain function. The
docstring of `run` may have the line `By hand: REASON`, if no tool can migrate the program, and the
line `Tolerance: NUMBER`, relative to the largest entry, if it computes in half precision. Those of
`training` need not have an automatic fix, but must not break.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[2] / "fixtures"
RTOL = 2e-5
# A gradient that is zero up to rounding differs by as much as its own value.
ATOL = 1e-7
# Rules for code that fails or computes something else.
BREAKING = ("RMT0", "RMT1", "RMT2", "RMT4", "RMT5")
PROGRAMS = sorted(path.parent for path in FIXTURES.glob("programs/*/run.py"))
TRAINING = sorted(path.parent for path in FIXTURES.glob("training/*/run.py"))


@pytest.mark.parametrize(
    "chosen",
    [
        [*PROGRAMS, *TRAINING[:1]],
        *(
            pytest.param(TRAINING[start : start + 12], marks=pytest.mark.slow)
            for start in range(0, len(TRAINING), 12)
        ),
    ],
    ids=lambda chosen: chosen[-1].name,
)
def test_results_are_unchanged(
    chosen: list[Path], tmp_path: Path, remat_migrate, run_programs, assert_equal_arrays
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    left: dict[str, list[str]] = {program.name: [] for program in chosen}
    for program in chosen:
        for copy in (before, after):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(program, copy / program.name, ignore=ignored)
    ran = remat_migrate(after, "--fix", "--output-format", "json", ".")
    assert ran.returncode in (0, 1), ran.stderr
    for finding in json.loads(ran.stdout)["findings"]:
        if finding["code"].startswith(BREAKING):
            place = f"{finding['path']}:{finding['line']}"
            left[finding["path"].partition("/")[0]].append(f"{place} {finding['message']}")
    targets = {program: f"{program.name}.run:main" for program in chosen}
    expected = run_programs(before, *targets.values(), plain=True)
    actual = run_programs(after, *targets.values())
    for program, target in targets.items():
        text = (program / "run.py").read_text()
        by_hand = re.search(r"^By hand: ", text, re.MULTILINE)
        assert not isinstance(expected[target], str), expected[target]
        if left[program.name]:
            assert by_hand or program in TRAINING, left[program.name]
            continue
        assert not isinstance(actual[target], str), f"{target}: {actual[target]}"
        tolerance = re.search(r"^Tolerance: (\S+)", text, re.MULTILINE)
        rtol = float(tolerance[1]) if tolerance else RTOL
        assert_equal_arrays(expected[target], actual[target], rtol, ATOL)
