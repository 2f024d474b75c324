"""What a unit computes for a case, in every mode, as it is written down."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from worker_package import load_worker

evaluate = load_worker("comparison.evaluate")


def evaluated(folder: Path, unit: Any, *args: Any, eager: bool = True, **kwargs: Any) -> Any:
    """What is written of a unit's results, and what is said of its failure."""
    case = {"args": args, "kwargs": kwargs, "context": None}
    failure = evaluate.evaluate(unit, case, str(folder), eager)["failure"]
    return json.loads((folder / "result.json").read_text()), failure


def test_modes(tmp_path: Path) -> None:
    x = np.ones((2, 3), np.float32)
    result, failure = evaluated(tmp_path, lambda x, y: (x * 2.0, {"y": y}), x, np.int32(3))
    assert failure == {}
    assert list(result["modes"]) == ["eager", "gradient", "jit"]
    values = result["modes"]["eager"]["leaves"]
    assert [leaf["path"] for leaf in values] == ["[0]", "[1]['y']"]
    assert [leaf["shape"] for leaf in values] == [[2, 3], []]
    assert [leaf["dtype"] for leaf in values] == ["float32", "int32"]
    # Of arrays of numbers that are not integers alone.
    assert [leaf["shape"] for leaf in result["modes"]["gradient"]["leaves"]] == [[2, 3]]
    assert [leaf["shape"] for leaf in result["modes"]["jit"]["leaves"]] == [[2, 3], []]


def test_integers_have_no_gradient(tmp_path: Path) -> None:
    result, _ = evaluated(tmp_path, lambda x: x + 1, np.arange(3))
    assert list(result["modes"]) == ["eager", "jit"]


def test_arrays_alone_are_traced(tmp_path: Path) -> None:
    """Flags, strings, functions and shapes stay what they are under every transformation."""
    seen = []

    def unit(x: Any, train: bool, axis: int, name: str, act: Any, *, options: Any) -> Any:
        assert train is True
        assert type(axis) is int
        assert name == "mean"
        assert options == {"shape": (3,), "kind": None}
        seen.append(isinstance(x, jax.core.Tracer))
        return act(x.sum(axis))

    options = {"shape": (3,), "kind": None}
    _, failure = evaluated(
        tmp_path, unit, jnp.ones((2, 3)), True, 0, "mean", jnp.tanh, options=options
    )
    assert failure == {}
    assert set(seen) == {False, True}


def test_random_numbers_are_reproducible(tmp_path: Path) -> None:
    def unit() -> Any:
        return random.random() + np.random.rand()

    for name in ("a", "b"):
        evaluated(tmp_path / name, unit)
        random.random()
        np.random.rand()
    assert (tmp_path / "a/arrays.npz").read_bytes() == (tmp_path / "b/arrays.npz").read_bytes()


def test_error_in_one_mode_does_not_affect_others(tmp_path: Path) -> None:
    result, failure = evaluated(tmp_path, lambda x: x if x.sum() > 0 else -x, np.ones(3))
    assert failure == {}
    assert "error" not in result["modes"]["eager"]
    assert result["modes"]["jit"]["error"]["type"] == "jax.errors.TracerBoolConversionError"


def test_an_error_in_all_modes_is_a_failure(tmp_path: Path) -> None:
    def unit(x: Any) -> Any:
        raise KeyError("weights")

    _, failure = evaluated(tmp_path, unit, np.ones(3))
    assert (failure["type"], failure["message"]) == ("KeyError", "'weights'")


def test_code_that_does_not_compile(tmp_path: Path) -> None:
    result, _ = evaluated(tmp_path, lambda x: jnp.sin(x) if x[0] > 0 else x, jnp.ones(3))
    modes = result["modes"]
    assert [name for name in modes if "error" in modes[name]] == ["jit"]


def test_values_beside_programs_are_those_of_the_uncompiled_unit(tmp_path: Path) -> None:
    x = np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3)

    def compilable(x: Any) -> Any:
        return {"y": jnp.tanh(x), "label": "tanh", "count": 3, "array": np.arange(2)}

    def branching(x: Any) -> Any:
        return jnp.tanh(x) if x.sum() > 10 else jnp.sin(x) + np.random.rand()

    for number, unit in enumerate((compilable, branching)):
        case = {"args": (x,), "kwargs": {}, "context": None}
        folders = [tmp_path / f"{number}-{first}" for first in (False, True)]
        for first, folder in enumerate(folders):
            assert evaluate.evaluate(unit, case, str(folder), first=bool(first))["failure"] == {}
        whole, quick = (json.loads((f / "result.json").read_text()) for f in folders)
        assert list(quick["modes"]) == ["eager"]
        assert quick["modes"]["eager"] == whole["modes"]["eager"]
        every, few = (np.load(folder / "arrays.npz") for folder in folders)
        for name, array in few.items():
            np.testing.assert_allclose(every[name], array, rtol=1e-6)
