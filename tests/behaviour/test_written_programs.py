"""The programs of `fixtures/programs`: a slice in every run, all of them with `-m slow`."""

from __future__ import annotations

import sys

import pytest
from programs import PROGRAMS, programs, try_programs

NAMES = programs(PROGRAMS)
TOOL = (sys.executable, "-m", "remat_migrate")


def check(names: list[str]) -> None:
    results = list(try_programs(PROGRAMS, names, TOOL))
    wrong = [r for r in results if r.outcome not in ("equal", "by hand")]
    assert not wrong, "\n".join(f"{r.outcome} {r.name}: {r.detail}\n{r.diff}" for r in wrong)


def test_a_slice_of_the_programs():
    check(NAMES[::10])


@pytest.mark.slow
def test_all_programs():
    check(NAMES)
