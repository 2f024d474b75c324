"""What a run leaves in its module does not reach the next."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from worker_package import load_worker

module_state = load_worker("module_state")
projects = load_worker("environment.projects")

CODE = """\
import jax.numpy as jnp
from flax import nnx

STEPS = 0
CACHE = {"tables": {}}
SEEN = []
LAYER = nnx.Linear(2, 2, rngs=nnx.Rngs(0))


def run(x):
    global STEPS
    STEPS += 1
    SEEN.append(x)
    CACHE["tables"][x.shape] = jnp.sin(x)
    LAYER.kernel[...] = LAYER.kernel[...] * (1 + x.sum())
    del LAYER.bias
    return x
"""


@pytest.fixture
def module(tmp_path: Path) -> Any:
    path = tmp_path / "model.py"
    path.write_text(CODE)
    projects.add(str(tmp_path))
    spec = importlib.util.spec_from_file_location("model", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_data_is_restored(module: Any) -> None:
    kernel = jnp.copy(module.LAYER.kernel[...])
    for _ in range(2):
        with module_state.restored(module.run):
            module.run(jnp.ones(3))
            assert module.STEPS == 1
            assert len(module.SEEN) == 1
            assert module.CACHE["tables"]
        assert module.STEPS == 0
        assert not module.SEEN
        assert module.CACHE == {"tables": {}}
        assert jnp.array_equal(module.LAYER.kernel[...], kernel)
        assert module.LAYER.bias is not None


def test_after_a_trace_that_fails(module: Any) -> None:
    def traced(x: Any) -> Any:
        with module_state.restored(module.run):
            module.SEEN.append(x)
            return bool(x)

    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(traced)(1.0)
    assert not module.SEEN
