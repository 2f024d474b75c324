"""Overridden methods called by a checkpointed one: the migration preserves values and gradients."""

from __future__ import annotations

import sys

import override_programs
import programs
import pytest

NAMES = list(override_programs.names())
TOOL = (sys.executable, "-m", "remat_migrate")


def check(folder, names: list[str]) -> None:
    for name in names:
        override_programs.write(folder, name)
    results = list(programs.try_programs(folder, names, TOOL, together=True))
    wrong = [r for r in results if r.outcome not in ("equal", "left")]
    equal = [r for r in results if r.outcome == "equal"]
    assert len(equal) > len(results) * 0.6
    assert not wrong, "\n".join(f"{r.outcome} {r.name}: {r.detail}\n{r.diff}" for r in wrong)


def test_subset(tmp_path):
    check(tmp_path, NAMES[::13])


@pytest.mark.slow
def test_all(tmp_path):
    check(tmp_path, NAMES)
