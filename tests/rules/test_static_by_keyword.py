"""RMT202 and RMT203: static arguments by keyword, or left to their default."""

from __future__ import annotations

import pytest
from support import findings, fixed

HEAD = "from functools import partial\nimport jax\nimport flax.linen as nn\n"
F = "def f(x, a=1, b=2):\n    return x * a * b\n"
BOTH = ("RMT202", "RMT203")


def codes(code: str, **options: object) -> list[str]:
    return [f.code for f in findings(HEAD + code, select=BOTH, **options)]


FOUND = [
    ("y = jax.checkpoint(f, static_argnums=2)(1.0, a=1)\n", ["RMT203"]),
    (
        "g = jax.checkpoint(f, static_argnums=(2,))\ny = g(1.0) + g(1.0, b=2)\n",
        ["RMT203", "RMT202"],
    ),
    # Negative indices count passed arguments: RMT207.
    ("y = jax.checkpoint(f, static_argnums=-1)(1.0, 1, b=2)\n", ["RMT202"]),
]


@pytest.mark.parametrize(("code", "expected"), FOUND)
def test_found(code: str, expected: list[str]) -> None:
    assert codes(F + code) == expected


def test_the_next_implementation_accepts_defaults() -> None:
    flag = 'jax.config.update("jax_remat3", True)\n'
    call = "g = jax.checkpoint(f, static_argnums=(2,))\ny = g(1.0) + g(1.0, b=2)\n"
    assert codes(flag + F + call) == ["RMT202"]


def test_a_default_that_is_not_a_literal_is_not_fixed() -> None:
    code = (
        f"{HEAD}D = object()\ndef f(x, d=D):\n    return x\n"
        "y = jax.checkpoint(f, static_argnums=(1,))(1.0)\n"
    )
    (found,) = findings(code, select=BOTH)
    assert "not a literal" in found.reason
    assert fixed(code, select=BOTH)["example.py"] == code


def test_calls_in_other_files() -> None:
    files = {
        "model.py": "import jax\nfrom functools import partial\n\n\n"
        "@partial(jax.checkpoint, static_argnums=(1,))\ndef f(x, n=2):\n    return x**n\n",
        "train.py": "from model import f\n\ny = f(1.0, n=3)\n",
    }
    assert fixed(files, select=BOTH)["train.py"] == "from model import f\n\ny = f(1.0, 3)\n"


def test_expected_failures_are_ignored() -> None:
    code = (
        f"import unittest\n{HEAD}{F}g = jax.checkpoint(f, static_argnums=(1,))\n\n\n"
        "class Tests(unittest.TestCase):\n    def test(self):\n"
        "        with self.assertRaises(ValueError):\n            g(1.0, a=1)\n"
    )
    assert findings(code, select=BOTH) == []


def test_passing_a_dropped_argument_is_unsafe() -> None:
    code = (
        "import flax.linen as nn\nfrom flax.linen import partitioning\n\n\n"
        "class Block(nn.Module):\n    @nn.compact\n    def __call__(self, x, double=False):\n"
        "        return 2 * x if double else x\n\n\n"
        "class Net(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n"
        "        return partitioning.remat(Block, static_argnums=(1,))()(x, double=True)\n"
    )
    [found] = findings(code, select=("RMT202",))
    assert found.fix is not None
    assert found.fix.safety == "unsafe"
    assert fixed(code, select=("RMT202",)) == {"example.py": code}
    assert "()(x, True)" in fixed(code, select=("RMT202",), unsafe=True)["example.py"]
