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
    ("g = jax.checkpoint(f, static_argnames='c')\n", "g = jax.checkpoint(f)\n"),
    (
        "g = jax.checkpoint(f, static_argnames=('b', 'a'))\ny = g(1.0, b=3)\n",
        "g = jax.checkpoint(f, static_argnums=(1, 2))\ny = g(1.0, 1, 3)\n",
    ),
    (
        "N = ['a']\ng = jax.remat(f, static_argnames=N, prevent_cse=False)\ny = g(1.0, a=3)\n",
        "N = ['a']\ng = jax.remat(f, static_argnums=(1, 2), prevent_cse=False)\ny = g(1.0, 3, 2)\n",
    ),
    (
        "g = jax.checkpoint(f, static_argnums=(2,), static_argnames='a')\ny = g(1.0, 3, 4)\n",
        "g = jax.checkpoint(f, static_argnums=(1, 2))\ny = g(1.0, 3, 4)\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), FIXED)
def test_fixed(before: str, after: str) -> None:
    assert fixed_code(F + before) == F + after


FOR_YOU = [
    "g = jax.checkpoint(unknown, static_argnames='a')\n",
]


@pytest.mark.parametrize("code", FOR_YOU)
def test_found_and_not_fixed(code: str) -> None:
    (found,) = findings(HEAD + F + code, select=CODE)
    assert found.reason
    assert fixed_code(F + code) == F + code


@pytest.mark.parametrize(
    ("api", "version", "words"),
    [
        ("jax.checkpoint", "0.9.2", "TypeError"),
        ("jax.checkpoint", "0.10.2", "ignores"),
        ("jax.remat", "0.10.2", "TypeError"),
        ("hk.remat", "0.10.2", "TypeError"),
        ("nn.remat", "0.10.2", "TypeError"),
    ],
)
def test_the_message_depends_on_the_version(api: str, version: str, words: str) -> None:
    code = f"{HEAD}{F}g = {api}(f, static_argnames='a')\n"
    (found,) = findings(code, select=CODE, jax_version=version)
    assert words in found.message


def test_the_next_implementation_supports_it() -> None:
    flag = 'jax.config.update("jax_remat3", True)\n'
    code = f"{HEAD}{flag}{F}g = jax.%s(f, static_argnames='a')\n"
    assert findings(code % "checkpoint", select=CODE) == []
    assert len(findings(code % "remat", select=CODE)) == 1
