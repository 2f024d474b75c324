"""Cases that the user declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from worker_package import load_worker

declared = load_worker("inputs.declared")
load = load_worker("load")

UNITS = ["model.block", "model.Net.__call__", "trainer.losses.loss", "trainer.model.loss"]
KNOWN = [*UNITS, "model.unchanged", "model.Net.setup"]


def read(folder: Path, text: str) -> dict[str, list[dict[str, Any]]]:
    """The cases in a file with this text, without what each is about."""
    file = folder / "cases.py"
    file.write_text(text)
    found = declared.read(str(file), UNITS, KNOWN)
    return {unit: [case for _, case in cases] for unit, cases in found.items()}


def test_what_a_function_may_return(tmp_path: Path) -> None:
    text = "def block():\n    return {}\n"
    for written, args, kwargs in (
        ("(1, 2)", (1, 2), {}),
        ("()", (), {}),
        ("{'x': 1}", (), {"x": 1}),
        ("((1,), {'y': 2})", (1,), {"y": 2}),
        ("((1,), {2: 2})", ((1,), {2: 2}), {}),
        ("({'w': 1}, (2, 3))", ({"w": 1}, (2, 3)), {}),
    ):
        (case,) = read(tmp_path, text.format(written))["model.block"]
        assert (case["args"], case["kwargs"], case["context"]) == (args, kwargs, None)


def test_generator_fixture(tmp_path: Path) -> None:
    text = "def block():\n    yield (1,)\n    yield {'x': 2}\n"
    assert [case["kwargs"] for case in read(tmp_path, text)["model.block"]] == [{}, {"x": 2}]


def test_names(tmp_path: Path) -> None:
    text = (
        "def block(): return (1,)\n"
        "def unchanged(): return ()\n"
        "def _hidden(): return 3\n"
        "def helper(seed): return seed\n"
        "from math import sqrt\n"
        "def call(): return (helper(2),)\n"
        "CASES = {'Net.__call__': call, 'trainer.losses.loss': lambda: (3,)}\n"
    )
    found = {unit: case["args"] for unit, (case,) in read(tmp_path, text).items()}
    assert found == {"model.block": (1,), "model.Net.__call__": (2,), "trainer.losses.loss": (3,)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def loss(): return ()\n", "several units (trainer.losses.loss, trainer.model.loss)"),
        ("def blok(): return ()\n", "the case blok matches no unit; did you mean block?"),
        ("def nothing_like_it(): return ()\n", "matches no unit"),
        ("CASES = {'model.blocks': lambda: ()}\n", "did you mean model.block?"),
        ("def block(): return 3\n", "the case block returned a int: return a tuple"),
        ("def block(): return [1]\n", "returned a list"),
        ("def block(): yield [1]\n", "returned a list"),
    ],
)
def test_reports_invalid_cases(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(load.NotFound, match=None) as caught:
        read(tmp_path, text)
    assert words in str(caught.value)


def test_errors_of_the_file_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        read(tmp_path, "def block(): return 1 / 0\n")


def test_shapes_are_filled_at_random(tmp_path: Path) -> None:
    text = (
        "import jax, jax.numpy as jnp\n"
        "def s(shape, dtype): return jax.ShapeDtypeStruct(shape, dtype)\n"
        "def block():\n"
        "    return ({'w': s((3, 4), jnp.float32), 'v': s((3, 4), jnp.float32)}, 'relu',\n"
        "            s((5,), jnp.int32), s((64,), jnp.bool_), s((2,), jnp.bfloat16),\n"
        "            s((2,), jnp.complex64))\n"
    )
    first, second = (read(tmp_path, text)["model.block"][0]["args"] for _ in range(2))
    weights, act, indices, mask, halves, waves = first
    assert weights["w"].shape == (3, 4)
    assert isinstance(weights["w"], jax.Array)
    assert not np.array_equal(weights["w"], weights["v"])
    assert 0.3 < np.std(weights["w"]) < 3
    assert act == "relu"
    assert set(np.asarray(indices).tolist()) <= {0, 1}
    assert set(np.asarray(mask).tolist()) == {False, True}
    dtypes = [str(array.dtype) for array in (weights["w"], indices, mask, halves, waves)]
    assert dtypes == ["float32", "int32", "bool", "bfloat16", "complex64"]
    jax.tree_util.tree_map(np.testing.assert_array_equal, first, second)
