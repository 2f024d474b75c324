"""The models of the benchmark are what their names say."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
def test_only_checkpoints_without_barriers_outside_loops_are_excluded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("flax")
    monkeypatch.syspath_prepend(str(FOLDER))
    counted = 0
    for module, make in importlib.import_module("peak_correlation").KINDS.values():
        variants = getattr(importlib.import_module(f"models.{module}"), make)()
        for name, variant in variants.items():
            assert not variant.excluded or "prevent_cse=False" in name
            counted += not variant.excluded
    assert counted >= 60
    for name in [name for name in sys.modules if name.partition(".")[0] == "models"]:
        del sys.modules[name]
