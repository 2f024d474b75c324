"""Whose module an expression is; the table of layers against what is installed."""

from __future__ import annotations

import importlib
import inspect

import pytest

from remat_migrate.libraries.framework_layers import (
    LAYERS,
    PACKAGES,
    WITH_ARRAYS,
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


MADE = {
    "Embedding": (3, 3),
    "Conv": (1, 3, 3, 3),
    "ConvTranspose": (1, 3, 3, 3),
    "MLP": (3, 3, 3, 2),
    "MultiheadAttention": (1, 3),
    "PReLU": (),
}


@pytest.mark.parametrize("name", sorted(WITH_ARRAYS))
def test_layers_of_equinox_that_have_no_hash(name: str) -> None:
    equinox, jax = pytest.importorskip("equinox"), importlib.import_module("jax")
    arguments = MADE.get(name, (3, 3, 3) if name.startswith("Conv") else (3, 3))
    options = {} if name == "PReLU" else {"key": jax.random.key(0)}
    with pytest.raises(TypeError, match="unhashable"):
        hash(getattr(equinox.nn, name)(*arguments, **options))
