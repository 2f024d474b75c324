"""Nothing survives a killed run: see `verify_kills` for the same at random times."""

from __future__ import annotations

from pathlib import Path

import pytest
from verify_kills import SIGNALS, leftovers, make_project


@pytest.mark.parametrize("name", SIGNALS)
def test_nothing_is_left(tmp_path: Path, name: str) -> None:
    assert not leftovers(make_project(tmp_path), name, 2.5, command=name == "SIGHUP")
