"""RMT205: an array as a static argument."""

from __future__ import annotations

import pytest
from support import findings

CODE = "RMT205"
HEAD = (
    "import jax\nimport jax.numpy as jnp\nimport numpy as np\n\n\n"
    "def f(x, n):\n    return x * n\n\n\ng = jax.checkpoint(f, static_argnums=(1,))\n"
)


@pytest.mark.parametrize("passed", ["jnp.ones(3)", "np.arange(3)", "jax.random.key(0)"])
def test_found(passed: str) -> None:
    (found,) = findings(f"{HEAD}y = g(1.0, {passed})\n", select=CODE)
    assert "`n`" in found.message


@pytest.mark.parametrize("passed", ["3", "(1, 2)", "True", "unknown", "jnp.ones(3).ndim"])
def test_left_alone(passed: str) -> None:
    assert findings(f"{HEAD}y = g(1.0, {passed})\n", select=CODE) == []


def test_off_by_default() -> None:
    assert findings(f"{HEAD}y = g(1.0, jnp.ones(3))\n", select=()) == []
