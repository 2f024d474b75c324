"""Whose module an expression is; the table of layers against what is installed."""

from __future__ import annotations

import importlib
import inspect

import pytest

from remat_migrate.libraries.framework_layers import (
    LAYERS,
    PACKAGES,
    Framework,
)

ROOTS = {"linen": "flax.linen", "nnx": "flax.nnx", "haiku": "haiku", "equinox": "equinox"}


@pytest.mark.parametrize("framework", LAYERS)
def test_the_layers_of_each_framework(framework: Framework) -> None:
    base = pytest.importorskip(ROOTS[framework]).Module
    found = {
        name
        for package in PACKAGES[framework]
        for name, cls in vars(importlib.import_module(package)).items()
        if inspect.isclass(cls) and issubclass(cls, base) and not name.startswith("_")
    }
    absent = {f"{ROOTS[framework]}.{name}" for name in LAYERS[framework] - found}
    assert found <= LAYERS[framework]
    assert absent <= {"flax.nnx.RoPE"}  # which only the newest releases have
