"""The programs of `fixtures/programs`: a subset by default, all with `-m slow`.

Those of `fixtures/training` need not have an automatic fix, but must not break.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from programs import PROGRAMS, programs, try_programs

NAMES = programs(PROGRAMS)
TRAINING = PROGRAMS.parent / "training"
TOOL = (sys.executable, "-m", "remat_migrate")


def check(names: list[str], folder: Path = PROGRAMS, *, left: bool = False) -> None:
    results = list(try_programs(folder, names, TOOL))
    allowed = ("equal", "by hand", *(["left"] if left else []))
    wrong = [r for r in results if r.outcome not in allowed]
    assert not wrong, "\n".join(f"{r.outcome} {r.name}: {r.detail}\n{r.diff}" for r in wrong)


def test_subset():
    check(NAMES[::10])


@pytest.mark.slow
def test_all():
    check(NAMES)


@pytest.mark.slow
def test_training_programs():
    check(programs(TRAINING), TRAINING, left=True)
