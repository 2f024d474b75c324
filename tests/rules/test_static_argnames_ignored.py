"""RMT206: `static_argnames` of a checkpoint."""

from __future__ import annotations

import pytest
from support import findings, fixed

CODE = "RMT206"
HEAD = "import jax\nfrom functools import partial\nimport flax.linen as nn\nimport haiku as hk\n"
F = "def f(x, a=1, b=2):\n    return x * a * b\n"


def fixed_code(code: str) -> str:
    return fixed(HEAD + code, select=CODE)["example.py"].removeprefix(HEAD)


FIXED = [
    (
        "g = jax.checkpoint(f, static_argnames=('b', 'a'))\ny = g(1.0, b=3)\n",
        "g = jax.checkpoint(f, static_argnums=(1, 2))\ny = g(1.0, 1, 3)\n",
    ),
    (
        "g = jax.checkpoint(f, static_argnums=(2,), static_argnames='a')\ny = g(1.0, 3, 4)\n",
        "g = jax.checkpoint(f, static_argnums=(1, 2))\ny = g(1.0, 3, 4)\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), FIXED)
def test_fixed(before: str, after: str) -> None:
    assert fixed_code(F + before) == F + after


def test_the_next_implementation_supports_it() -> None:
    flag = 'jax.config.update("jax_remat3", True)\n'
    code = f"{HEAD}{flag}{F}g = jax.%s(f, static_argnames='a')\n"
    assert findings(code % "checkpoint", select=CODE) == []
    assert len(findings(code % "remat", select=CODE)) == 1
