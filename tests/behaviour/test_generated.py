"""Generated programs compute the same before and after migration; a subset runs by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from generated_programs import (
    Program,
    array_programs,
    flag_programs,
    object_programs,
    open_programs,
    tree_programs,
)
from support import fix_in_memory, prepare, write_files

from remat_migrate.settings import Options

Generator = Callable[[int, int], Iterator[Program]]
GENERATORS: tuple[Generator, ...] = (
    tree_programs,
    flag_programs,
    object_programs,
    open_programs,
    array_programs,
)
RTOL = 2e-5


@pytest.fixture
def check(tmp_path: Path, run_programs: Any, assert_equal_arrays: Any) -> Callable[..., None]:
    """Check that migrated programs compute the same.

    Operations on a JAX array may be traced inside a checkpoint, an array that is passed may be
    traced, and the items of a sorted copy may be: some programs have no automatic fix.
    """

    def run(programs: list[Program]) -> None:
        before, after = tmp_path / "before", tmp_path / "after"
        targets = []
        for program in programs:
            text = _migrated(tmp_path / "one", program.text)
            if text is None:
                by_hand = "jax" in program.name or program.name.startswith("array_")
                by_hand = by_hand or "_items_sorted_" in program.name
                assert by_hand, f"{program.name} is left by hand"
                continue
            write_files(before, {f"{program.name}.py": program.text})
            write_files(after, {f"{program.name}.py": text})
            targets.append(f"{program.name}:main")
        expected = run_programs(before, *targets, plain=True)
        actual = run_programs(after, *targets)
        for target in targets:
            assert not isinstance(expected[target], str), expected[target]
            assert not isinstance(actual[target], str), f"{target}: {actual[target]}"
            assert_equal_arrays(expected[target], actual[target], RTOL)

    return run


def _migrated(folder: Path, text: str) -> str | None:
    """Return the text after all safe fixes, or None if `concrete=` remains."""
    write_files(folder, {"pyproject.toml": "", "m.py": text})
    outcome = fix_in_memory(prepare([folder], Options()), unsafe=False)
    if any(finding.code == "RMT101" for finding in outcome.analysis.findings):
        return None
    (change,) = outcome.changes
    return change.after.text


def test_subset(check: Callable[..., None]) -> None:
    slices = zip(GENERATORS, (67, 101, 97, 29, 71), strict=True)
    check([program for generator, every in slices for program in generator(every, every // 3)])


@pytest.mark.slow
@pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: g.__name__)
def test_all(generator: Generator, check: Callable[..., None]) -> None:
    check(list(generator(5, 0)))
