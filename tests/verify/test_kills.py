"""Nothing survives a killed run: see `verify_kills` for the same at random times."""

from __future__ import annotations

from pathlib import Path

import pytest
from verify_kills import RUNS, SIGNALS, leftovers, make_project


@pytest.mark.parametrize(("name", "run"), zip(SIGNALS, ("verify", "command", "plan"), strict=True))
def test_nothing_is_left(tmp_path: Path, name: str, run: str) -> None:
    assert not leftovers(make_project(tmp_path), name, 2.5, RUNS[run])
